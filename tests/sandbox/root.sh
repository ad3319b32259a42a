# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by ./sandbox: what is made once and kept in the cache: the Debian root that a cluster lives in, by debootstrap, and
# the database that it begins with. Each is made beside its place and then renamed, so that an interrupted one is never
# taken for whole.
# shellcheck shell=sh disable=SC2154

# To be raised when the making of the root changes otherwise than by its packages: existing roots are then made anew.
recipe_version=1

choose_packages() {
	packages='slurmctld slurmd slurmdbd slurmrestd slurm-client slurm-wlm-jwt-plugin munge mariadb-server'
	packages="$packages prometheus prometheus-pushgateway curl procps"
	# There, the plugin is one of Slurm's basic ones.
	[ "$suite" != bullseye ] || packages=$(echo "$packages" | sed 's/ slurm-wlm-jwt-plugin//')
}

# Of a cluster that has a name, it is a copy of the one of the release.
make_root() {
	recipe="$recipe_version $packages"
	[ "$(cat "$root/.sonde-recipe" 2>/dev/null)" != "$recipe" ] || return 0
	(
		exec 8>"$cache/sandbox/$suite/root.lock"
		flock -w "$patience" 8 || fail "another ./sandbox has been making $cache/sandbox/$suite/root for $patience s"
		install_root "$cache/sandbox/$suite"
		[ -z "$name" ] || link_root "$cache/sandbox/$suite/root"
	)
}

# install_root BASE
install_root() {
	[ "$(cat "$1/root/.sonde-recipe" 2>/dev/null)" != "$recipe" ] || return 0
	need_packages debootstrap debian-archive-keyring wget
	need_space 2000 "$1" "a Debian root with Slurm"
	use_apt_proxy
	mirror=$(find_mirror) || fail "no Debian mirror with $suite is reached from apt's configuration (name one: SANDBOX_MIRROR=URL)"
	log=$1/debootstrap.log
	say "Making a Debian $suite root with Slurm in $1/root: about a minute (log: $log)"
	new=$1/root.new
	safe_remove "$new"
	mkdir -p "$new/etc/dpkg/dpkg.cfg.d" "$cache/sandbox/debs"
	# No fsync for each file, no manuals: a third of the time.
	printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/man/*' \
		'path-exclude=/usr/share/locale/*' >"$new/etc/dpkg/dpkg.cfg.d/sandbox"
	# In a mount namespace, so that no mount of an interrupted debootstrap stays.
	# shellcheck disable=SC2086
	unshare --mount --propagation "$propagation" debootstrap --variant=minbase --cache-dir="$cache/sandbox/debs" \
		--include="$(echo $packages | tr ' ' ,)" "$suite" "$new" "$mirror" </dev/null >"$log" 2>&1 ||
		fail "debootstrap fails: $(reason_in "$log") (log: $log; what it has downloaded is kept for the next time)"
	furnish "$new"
	echo "$recipe" >"$new/.sonde-recipe"
	put_in_place "$new" "$1/root"
}

# link_root ROOT: by hard links, which takes no time and no gigabyte. Programs replace files by renaming; the one that init
# writes in place is not shared.
link_root() {
	safe_remove "$base/root.new"
	cp -al "$1" "$base/root.new"
	rm -f "$base/root.new/etc/hosts"
	put_in_place "$base/root.new" "$root"
}

# put_in_place NEW DIRECTORY
put_in_place() {
	safe_remove "$2.old"
	[ ! -e "$2" ] || mv "$2" "$2.old"
	mv "$1" "$2"
	safe_remove "$2.old"
}

# What most of a start would go into is the same each time: MariaDB's tables, slurmdbd's, and the registration of the cluster.
# It is made once, by a cluster named template, and copied from there: leaves the place in $database.
make_database() {
	database=$cache/sandbox/$suite-template/database
	made_by="$recipe_version $packages $(cat "$here/tests/sandbox/cluster" "$here"/tests/sandbox/etc/*.in | cksum)"
	! database_is_made || return 0
	(
		# shellcheck disable=SC2034 # read by make_state
		name=template conf='' etc=''
		place_files
		lock
		! database_is_made || exit 0
		say "Making the database of a new cluster in $database"
		make_root
		make_state
		start_init
		enter "$inside_tests/cluster" make_database "$inside" || fail "the database could not be made (logs: $state/log)"
		end_all
		safe_remove "$base/database.new"
		mkdir "$base/database.new"
		mv "$state/mysql" "$state/mysql.password" "$base/database.new"
		rm -f "$base/database.new/mysql/socket"
		echo "$made_by" >"$base/database.new/made-by"
		put_in_place "$base/database.new" "$database"
	) || exit
}

database_is_made() {
	[ "$(cat "$database/made-by" 2>/dev/null)" = "$made_by" ]
}

# What a person who runs apt-get inside will need, and the directories to mount on.
furnish() {
	rm -f "$1"/var/cache/apt/archives/*.deb
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod 755 "$1/usr/sbin/policy-rc.d"
	# The Release file of a mirror that is frozen in time has expired.
	echo 'Acquire::Check-Valid-Until "false";' >"$1/etc/apt/apt.conf.d/sandbox"
	mkdir -p "$1/sandbox" "$1/src" "$1/etc/slurm"
}

# debootstrap and wget go by the environment, not by apt's configuration.
use_apt_proxy() {
	[ -z "${http_proxy:-}${https_proxy:-}" ] || return 0
	eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
	export http_proxy https_proxy
}

# The first of apt's sites that has the suite, and is Debian's own archive.
find_mirror() {
	if [ -n "${SANDBOX_MIRROR:-}" ]; then
		echo "$SANDBOX_MIRROR"
		return
	fi
	for site in $(apt_sites); do
		case $site in
		http://* | https://*) release=$(wget -q -T 20 -t 2 -O - "$site/dists/$suite/Release") || continue ;;
		file:*) release=$(cat "${site#file:}/dists/$suite/Release") || continue ;;
		*) continue ;;
		esac 2>/dev/null
		case $release in
		*'Label: Debian
'*)
			echo "$site"
			return
			;;
		esac
	done
	return 1
}

# apt tells of its sites only after a first update.
apt_sites() {
	[ -n "$(index_sites)" ] || apt-get -o Acquire::Check-Valid-Until=false update >/dev/null 2>&1 || :
	index_sites
}

index_sites() {
	# shellcheck disable=SC2016 # for apt to expand
	apt-get indextargets --format '$(SITE)' | awk '!seen[$0]++'
}
