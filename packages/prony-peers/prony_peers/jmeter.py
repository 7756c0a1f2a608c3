"""Apache JMeter without its GUI: closed loops, a thread per user."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from prony_peers.base import Claim, Command, InstalledTool, NotOffered, PeerLoad, last_line, only_http_1

PLAN = """<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0">
  <hashTree>
    <TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="second opinion"/>
    <hashTree>
      <ThreadGroup guiclass="ThreadGroupGui" testclass="ThreadGroup" testname="users">
        <stringProp name="ThreadGroup.num_threads">{users}</stringProp>
        <stringProp name="ThreadGroup.ramp_time">0</stringProp>
        <boolProp name="ThreadGroup.scheduler">true</boolProp>
        <stringProp name="ThreadGroup.duration">{seconds}</stringProp>
        <elementProp name="ThreadGroup.main_controller" elementType="LoopController">
          <boolProp name="LoopController.continue_forever">false</boolProp>
          <intProp name="LoopController.loops">-1</intProp>
        </elementProp>
      </ThreadGroup>
      <hashTree>
        <HTTPSamplerProxy guiclass="HttpTestSampleGui" testclass="HTTPSamplerProxy" testname="request">
          <elementProp name="HTTPsampler.Arguments" elementType="Arguments">
            <collectionProp name="Arguments.arguments"/>
          </elementProp>
          <stringProp name="HTTPSampler.protocol">{scheme}</stringProp>
          <stringProp name="HTTPSampler.domain">{host}</stringProp>
          <stringProp name="HTTPSampler.port">{port}</stringProp>
          <stringProp name="HTTPSampler.path">{path}</stringProp>
          <stringProp name="HTTPSampler.method">GET</stringProp>
          <boolProp name="HTTPSampler.use_keepalive">{keep_alive}</boolProp>
        </HTTPSamplerProxy>
        <hashTree/>
      </hashTree>
    </hashTree>
  </hashTree>
</jmeterTestPlan>
"""


class Jmeter(InstalledTool):
    """JMeter 5."""

    name = "jmeter"
    install = "make peers, or Apache JMeter's own archive with its bin folder on the PATH (a JDK is needed)"
    version_pattern = r"\b(\d+\.\d+(?:\.\d+)?)\s*$"
    version_options = ("--version", "-j", os.devnull)

    def command(self, program: Path, request: PeerLoad) -> Command:
        case = request.case
        only_http_1(case)
        if case.rate_per_s is not None:
            raise NotOffered("its open loop does more than plain requests; leave the rate out")
        parts = urlsplit(request.url)
        plan = PLAN.format(
            users=case.connections,
            seconds=request.seconds,
            scheme=parts.scheme,
            host=escape(parts.hostname or ""),
            port=parts.port or (443 if parts.scheme == "https" else 80),
            path=escape((parts.path or "/") + (f"?{parts.query}" if parts.query else "")),
            keep_alive=str(not case.per_request).lower(),
        )
        argv = (str(program), "-n", "-t", "plan.jmx", "-l", "out.jtl", "-j", "jmeter.log")
        return Command(argv, files={"plan.jmx": plan})

    def claim(self, stdout: str, stderr: str, exit_code: int) -> Claim:
        summaries = re.findall(
            r"^summary =\s+(\d+) in \S+ =\s+([\d.]+)/s .*?Err:\s+(\d+)", stdout, re.MULTILINE
        )
        if exit_code != 0 or not summaries:
            raise ValueError(last_line(stderr or stdout))
        requests, per_s, errors = summaries[-1]
        return Claim(requests=int(requests), errors=int(errors), per_s=float(per_s))
