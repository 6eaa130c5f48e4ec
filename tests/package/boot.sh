#!/bin/sh
# Starts systemd as the first process of a separate machine: the file system ROOT, in new namespaces without a network,
# which end with systemd. test_package.py makes ROOT and starts this script.
#
#   unshare -m -p -n -u -i -C --fork --kill-child tests/package/boot.sh ROOT
set -eu
root=$1

mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
if grep -q 'name=systemd' /proc/self/cgroup; then
    mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
    mkdir "$root/sys/fs/cgroup/systemd"
    mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
else
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi
for place in run dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$place"; done
mount -t tmpfs tmpfs "$root/tmp"
for node in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "$root/dev/${node%:*}" c 1 "${node#*:}"
done
mknod -m 666 "$root/dev/tty" c 5 0
mkdir "$root/dev/pts" "$root/dev/shm"
# The systemd setting PrivateDevices= requires /dev/pts.
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up
cd "$root"
mkdir -p .before
pivot_root . .before
umount -l /.before
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=reach-test /lib/systemd/systemd --log-target=console
