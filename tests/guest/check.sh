#!/bin/bash
# check.sh KERNEL...
#
# Builds everything for arm64 and runs the guest tests once on each KERNEL, all
# at the same time: 6.1 is Debian 12's, any other the one of its backports.  Exits with 0 if no
# test has failed; what cannot be had here is skipped, and said.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=build/aarch64-linux-gnu
store=build/guest
make=("${MAKE:-make}" --no-print-directory CROSS=aarch64-linux-gnu)
status=0
table=$'kernel|tests|passed|skipped|time|result\n'
declare -A guest=()
mkdir -p "$store"

# Each guest is a process group, so that it ends with us.
trap 'for kernel in "${!guest[@]}"; do kill -- "-${guest[$kernel]}" 2>/dev/null || true; done' EXIT
trap 'exit 130' INT TERM

# As cmocka tells it.
skip() {
	printf '%s\n' '[==========] Running 1 test(s).' "[ RUN      ] guest_$1" "skipped: $2" \
		"[  SKIPPED ] guest_$1" '[==========] 1 test(s) run.' '[  PASSED  ] 0 test(s).' \
		'[  SKIPPED ] 1 test(s), listed below:' "[  SKIPPED ] guest_$1" '' \
		' 1 SKIPPED TEST(S)'
	table+="$1|-|-|-|-|skipped: $2"$'\n'
}

# How many lines of that kind the tests of a log have told.
count() {
	grep -c "^\[ *$1 *\] [a-z]" "$2" || true
}

run() {
	local kernel=$1 log=$store/$1.log begun=$SECONDS code=0

	tests/guest/boot.sh "$store/kernel-$kernel" "$build" "${programs[@]}" >"$log" 2>&1 || code=$?
	echo "$((SECONDS - begun))" >"$log.seconds"
	return $code
}

# Waits for the guest, then shows what its tests have told.
show() {
	local kernel=$1 log=$store/$1.log code=0 result=passed

	wait "${guest[$kernel]}" || code=$?
	unset "guest[$kernel]"
	cat "$log"
	if [ $code != 0 ]; then
		status=$code
		result="FAILED ($code)"
	fi
	table+="$kernel|$(count RUN "$log")|$(count OK "$log")|$(grep -c '^skipped: ' "$log" || true)"
	table+="|$(cat "$log.seconds") s|$result"$'\n'
}

first_missing() {
	local program

	for program in qemu-system-aarch64 aarch64-linux-gnu-gcc cpio xz dpkg-deb; do
		command -v "$program" >/dev/null || { echo "$program" && return; }
	done
}

# Once: what is there stays.
fetch_kernel() {
	local dir=$store/kernel-$1 suite=()

	[ ! -e "$dir/ready" ] || return 0
	[ "$1" = 6.1 ] || suite=(-s bookworm-backports)
	rm -rf "$dir"
	tests/guest/fetch.sh "${suite[@]}" -d arm64 "$dir" linux-image-cloud-arm64 && touch "$dir/ready"
}

programs() {
	"${make[@]}" -s guest-list | sed "s|^|$PWD/|"
}

missing=$(first_missing)
unreachable=''
if [ -n "$missing" ]; then
	unreachable="there is no $missing here (make deps-guest)"
elif ! "${make[@]}" sysroot; then
	unreachable="the arm64 libraries cannot be fetched"
else
	"${make[@]}" guest-programs
	mapfile -t programs < <(programs)
fi

for kernel; do
	if [ -n "$unreachable" ]; then
		skip "$kernel" "$unreachable"
	elif ! fetch_kernel "$kernel"; then
		skip "$kernel" "the kernel cannot be fetched"
	else
		set -m
		run "$kernel" &
		guest[$kernel]=$!
		set +m
	fi
done
for kernel; do
	[ -z "${guest[$kernel]:-}" ] || show "$kernel"
done

echo
awk -F'|' 'NF { printf "%-8s %7s %7s %8s %6s  %s\n", $1, $2, $3, $4, $5, $6 }' <<<"$table"
exit $status
