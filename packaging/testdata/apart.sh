# Runs a command on an overlay of this machine's files. The overlay keeps all changes in memory, and
# they are gone when the command ends. The caller has made namespaces for mounts, processes and the network.
set -e
mount --make-rprivate /
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
for kept in /tmp /dev; do mount --rbind $kept /mnt/root$kept; done
mount -t proc proc /mnt/root/proc
ip link set lo up
exec chroot /mnt/root "$@"
