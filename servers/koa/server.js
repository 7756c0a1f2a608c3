// SPDX-License-Identifier: Apache-2.0
// The pages on Koa. With more than one worker the cluster module starts so many processes, which share the port.
import cluster from 'node:cluster';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import Router from '@koa/router';
import Koa from 'koa';
import serve from 'koa-static';

const LONGEST_MS = 60_000;

const { values: options } = parseArgs({
  options: {
    host: { type: 'string' },
    port: { type: 'string' },
    static: { type: 'string' },
    workers: { type: 'string', default: '1' },
    cert: { type: 'string' },
    key: { type: 'string' },
  },
});

function pages() {
  const large = Buffer.from('0123456789abcdef'.repeat(65_536));
  const router = new Router();

  router.get('/', (ctx) => {
    ctx.type = 'text/plain';
    ctx.body = 'Hello, World!';
  });

  router.get('/delay', async (ctx) => {
    const asked = ctx.query.ms ?? '150';
    if (!/^\d{1,5}$/.test(asked) || Number(asked) > LONGEST_MS) {
      ctx.throw(400);
    }
    await sleep(Number(asked));
    ctx.type = 'text/html';
    ctx.body = 'Hello World!';
  });

  router.get('/Ping/PingServlet', (ctx) => {
    ctx.type = 'text/html';
    ctx.body = [
      '<html><head><title>Ping</title></head>',
      '<body><h1>Ping</h1>',
      '<p>The servlet is alive.</p>',
      '</body></html>',
      '',
    ].join('\n');
  });

  router.get('/json', (ctx) => {
    ctx.body = { message: 'Hello, World!' };
  });

  router.get('/large', (ctx) => {
    ctx.body = large;
  });

  return new Koa().use(router.routes()).use(serve(options.static));
}

function listen() {
  const handler = pages().callback();
  const server = options.key
    ? https.createServer({ cert: fs.readFileSync(options.cert), key: fs.readFileSync(options.key) }, handler)
    : http.createServer(handler);
  server.listen({ host: options.host, port: Number(options.port) });
}

const workers = Number(options.workers);
if (workers > 1 && cluster.isPrimary) {
  for (let worker = 0; worker < workers; worker += 1) {
    cluster.fork();
  }
} else {
  listen();
}
