#!/bin/bash
# boot.sh KERNEL BUILD "PROGRAM [TESTS]"...
#
# Boots the arm64 kernel unpacked in KERNEL, in QEMU without any help of the
# processor's, with the programs of the cross build in BUILD at the same paths
# as here, and runs PROGRAMs one after the other as root, all their tests or
# those that TESTS means (tests/support/choose.c).  Prints what they print.  Exits with 0 if all have, 1 if one has not, 124 if the guest is not
# done in time, 125 if it ended without telling.
#
# -icount shift=0 with one processor makes the instruction counter exact: the
# guest's nanosecond is an instruction.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 build=$(cd "$2" && pwd)
shift 2

limit=${GUEST_SECONDS:-1200}
triplet=aarch64-linux-gnu
libc=/usr/$triplet/lib
lib=$build/sysroot/usr/lib/$triplet

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,etc,lib,modules,proc,root,run,sys,tmp}
chmod 1777 "$root/tmp"

install -m 755 "$here/init" "$root/init"
install -m 755 "$build/sysroot/bin/busybox" "$root/bin/busybox"
# Not busybox's, which is static: nothing can be preloaded into it.
install -m 755 "$build/sysroot/bin/dash" "$root/bin/sh"
cp -L "$libc"/{ld-linux-aarch64.so.1,libc.so.6,libm.so.6,libpthread.so.0,libgcc_s.so.1} \
	"$lib"/{libpfm.so.4,libmsgpackc.so.2,libcmocka.so.0} "$root/lib"
printf '%s\n' root:x:0:0::/root:/bin/sh user:x:1000:1000::/tmp:/bin/sh \
	nobody:x:65534:65534::/:/bin/sh >"$root/etc/passwd"
printf '%s\n' root:x:0: user:x:1000: nogroup:x:65534: >"$root/etc/group"
printf '%s\n' "$@" >"$root/run/programs"

{
	find "$build"/{jphase,libjphase.so,examples,targets,guest/targets} -type f -perm -u+x
	printf '%s\n' "${@%% *}" | sort -u
} | while read -r file; do
	mkdir -p "$root$(dirname "$file")"
	"$triplet-strip" -o "$root$file" "$file"
done

find "$kernel" -path '*/drivers/virtio/*.ko*' -o -name 'virtio_blk.ko*' |
	while read -r module; do
		case $module in
		*.xz) xz -dc "$module" >"$root/modules/$(basename "$module" .xz)" ;;
		*) cp "$module" "$root/modules" ;;
		esac
	done
(cd "$root" && find . -mindepth 1 | cpio -o -H newc -R 0:0 --quiet) >"$work/initramfs"
truncate -s 64M "$work/disk"

timeout --foreground "$limit" qemu-system-aarch64 -M virt -cpu neoverse-n1 -smp 1 -m 512 -icount shift=0 \
	-nodefaults -no-user-config -display none -no-reboot -serial stdio \
	-kernel "$(find "$kernel/boot" -name 'vmlinu*' -print -quit)" -initrd "$work/initramfs" \
	-append 'console=ttyAMA0 panic=-1 loglevel=1 rdinit=/init' \
	-drive "file=$work/disk,format=raw,if=none,id=disk,cache=unsafe" \
	-device virtio-blk-pci,drive=disk </dev/null 2>"$work/err" |
	sed -un "s/\r*$//; w $work/console
		/^guest: begin/,/^guest: status/ { /^guest: status/!p }" || ended=$?

status=$(sed -n 's/^guest: status //p' "$work/console" | tail -n 1)
[ -z "$status" ] || exit "$status"
if [ "${ended:-0}" = 124 ]; then
	echo "boot.sh: the guest was not done after $limit s"
	exit 124
fi
echo "boot.sh: the guest ended without telling how it went; its last words:"
tail -n 20 "$work/console" "$work/err"
exit 125
