#!/usr/bin/env bash
# Installs Apache JMeter (the version of jmeter-pom.xml) from Maven Central below the folder that is named; needs Java and Maven.
# Only what HTTP plans need: protocol http, the functions and their dependencies.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: tools/peers/jmeter.sh FOLDER" >&2; exit 2; }
for tool in java mvn unzip; do
  command -v "$tool" >/dev/null || { echo "$tool was not found; install it with your distribution's packages, then try again" >&2; exit 2; }
done
here=$(cd "$(dirname "$0")" && pwd)
home=$1
rm -rf "$home"
mkdir -p "$home/lib/ext" "$home/lib/junit" "$home/bin"
home=$(cd "$home" && pwd)
mvn -q -B -f "$here/jmeter-pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$home/lib"
mv "$home"/lib/ApacheJMeter_*.jar "$home/lib/ext/"
mv "$home"/lib/ApacheJMeter-*.jar "$home/bin/ApacheJMeter.jar"
unzip -q -o "$home"/lib/ext/ApacheJMeter_config-*.jar 'bin/*' -d "$home"
cat > "$home/bin/jmeter" <<'RUN'
#!/usr/bin/env bash
home=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
exec java ${JVM_ARGS:-} -Djava.awt.headless=true -cp "$home/bin/ApacheJMeter.jar" org.apache.jmeter.NewDriver "$@"
RUN
chmod +x "$home/bin/jmeter"
echo "$home/bin/jmeter"
