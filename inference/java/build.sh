#!/usr/bin/env bash
# Builds paddle_inference.jar and libpaddle_inference_java.so into a folder: inference/java/build.sh OUT.
# Needs javac and the installed library, which pkg-config finds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: build.sh OUT}
home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")}
mkdir -p "$out/classes"
javac -Xlint:all -Werror -d "$out/classes" "$here"/com/baidu/paddle/inference/*.java
jar --create --file "$out/paddle_inference.jar" -C "$out/classes" .
read -r -a flags <<<"$(pkg-config --cflags --libs paddle_inference_c)"
${CC:-cc} -std=c11 -O2 -Wall -Wextra -Werror -fPIC -shared -I"$home/include" -I"$home/include/linux" \
    "$here/paddle_inference_java.c" -o "$out/libpaddle_inference_java.so" "${flags[@]}"
