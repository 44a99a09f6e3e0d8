#!/usr/bin/env bash
# Packs a release into dist/: the programs without symbols, their symbols in another archive, the web wallet, the files
# for systemd, Prometheus and Grafana, the documentation, two bills of materials (CycloneDX) for the programs and the web
# wallet, and checksums. `make dist` builds first.
#
#   script/dist.sh CARGO_SBOM      the path of the program cargo-sbom
set -euo pipefail
cd "$(dirname "$0")/.."
sbom=$1
programs=(fastpay-node fastpay-relayer fastpay fastpay-merchant)

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
host=$(rustc -vV | sed -n 's/^host: //p')
name=fastpay-$version-$host
# The same commit gives the same archives.
commit_time=$(git log -1 --format=%ct)
pack() { tar --sort=name --mtime="@$commit_time" --owner=0 --group=0 --numeric-owner -C dist -c "$1" | gzip -n -9 >"dist/$2"; }

rm -rf dist
mkdir -p "dist/$name/bin" "dist/$name-symbols"
for program in "${programs[@]}"; do
    objcopy --only-keep-debug "target/release/$program" "dist/$name-symbols/$program.debug"
    objcopy --strip-all "target/release/$program" "dist/$name/bin/$program"
    # A debugger finds the symbols by this name and checksum.
    objcopy --add-gnu-debuglink="dist/$name-symbols/$program.debug" "dist/$name/bin/$program"
    "dist/$name/bin/$program" --version >/dev/null
done
cp -r web/dist "dist/$name/web"
cp -r deploy docs LICENSE README.md CHANGELOG.md SECURITY.md "dist/$name/"
# The archive contains no sources, so its Dockerfile uses the programs in bin/.
sed -i 's/^ARG PROGRAMS=sources$/ARG PROGRAMS=archive/' "dist/$name/deploy/Dockerfile"
grep -q '^ARG PROGRAMS=archive$' "dist/$name/deploy/Dockerfile"
"$sbom" --output-format cyclone_dx_json_1_6 >"dist/$name-programs.cdx.json"
npm sbom --sbom-format cyclonedx --omit dev --workspace web >"dist/$name-web.cdx.json"
pack "$name" "$name.tar.gz"
pack "$name-symbols" "$name-symbols.tar.gz"
(cd dist && sha256sum ./*.tar.gz ./*.cdx.json >SHA256SUMS)

echo "in dist/, of commit $(git rev-parse --short HEAD):"
for program in "${programs[@]}"; do
    printf '  %-18s %4s MB, %s MB with symbols\n' "$program" \
        $(($(stat -c %s "dist/$name/bin/$program") / 1000000)) $(($(stat -c %s "target/release/$program") / 1000000))
done
(cd dist && du -h --apparent-size ./*.tar.gz ./*.cdx.json)
