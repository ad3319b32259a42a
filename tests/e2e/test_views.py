#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`sonde admin create-view` and drop-view on real MariaDBs with the tables of a real slurmdbd: the user can read the views
and nothing else, whatever clusters are called, and nobody else's views and users are touched.

SONDE_SUITES names the Debian releases to try, as for test_sandbox.py.
"""
import pathlib
import secrets
import tempfile
import unittest

from admin import run_admin
from slurm import SUITES, Slurm
from sonde import wait_until

HOSTILE = "x`'; DROP DATABASE victim; -- \\"


class Views:
    """The tests; a class for each suite is made below."""

    suite = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.socket = cls.slurm.env["SANDBOX_MARIADB_SOCKET"]
        wait_until(lambda: int(cls.sql("SELECT COUNT(*) FROM slurm_acct_db.sandbox_job_table WHERE nodes_alloc > 0")[0][0])
                   > 20, "slurmdbd has been told of the jobs")

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.directory = pathlib.Path(place.name)
        self.password = f"pa'ss\\wörd \" {secrets.token_hex(8)}"
        self.file = self.write("password", self.password)
        self.addCleanup(self.admin, "drop-view", check=False)

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    def admin(self, command, *flags, check=True, by=None):
        done = run_admin(command, *(by or ("--socket", self.socket)), *map(str, flags))
        self.assertNotIn(self.password, done.stdout + done.stderr)
        self.assertTrue(not check or done.returncode == 0, done.stderr)
        return done

    def create(self, *flags, **options):
        return self.admin("create-view", "--password-file", self.file, *flags, **options)

    @classmethod
    def sql(cls, text, *flags, check=True):
        """Rows as lists of texts; as root, or as `flags` say."""
        done = cls.slurm.run("mariadb", "--no-defaults", "-NB", "--default-character-set=utf8mb4", "-S",
                             cls.slurm.inside("mysql/socket"), *flags, "-e", text, check=check)
        if done.returncode:
            return done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def ask(self, text, user="sonde", **options):
        return self.sql(text, f"-u{user}", f"-p{self.password}", "slurm_acct_db", **options)

    def denied(self, text):
        told = self.ask(text, check=False)
        self.assertIsInstance(told, str, f"it was let: {text}")
        self.assertRegex(told, "denied", text)

    def later(self, statements):
        """When the test is over."""
        self.addCleanup(self.sql, statements)

    def second_cluster(self, name="second"):
        """As slurmdbd itself makes it."""
        self.slurm.run("sacctmgr", "-iQ", "add", "cluster", name)
        self.addCleanup(self.slurm.run, "sacctmgr", "-iQ", "delete", "cluster", name)

    def copied_cluster(self, name):
        """One that slurmdbd has not made, with tables like the real one's and one job of it."""
        quoted = name.replace("`", "``")
        text = name.replace("\\", "\\\\").replace("'", "''")
        self.sql("USE slurm_acct_db; CREATE TEMPORARY TABLE c AS SELECT * FROM cluster_table WHERE name = 'sandbox';"
                 f"UPDATE c SET name = '{text}', creation_time = creation_time + 1;"
                 "INSERT INTO cluster_table SELECT * FROM c;"
                 f"CREATE TABLE `{quoted}_job_table` LIKE sandbox_job_table;"
                 f"INSERT INTO `{quoted}_job_table` SELECT * FROM sandbox_job_table ORDER BY job_db_inx LIMIT 1;"
                 f"CREATE TABLE `{quoted}_assoc_table` LIKE sandbox_assoc_table;"
                 f"INSERT INTO `{quoted}_assoc_table` SELECT * FROM sandbox_assoc_table")
        self.later(f"USE slurm_acct_db; DELETE FROM cluster_table WHERE name = '{text}';"
                    f"DROP TABLE `{quoted}_job_table`, `{quoted}_assoc_table`")
        return quoted

    def state(self):
        """All that either command may change."""
        views = [name for name, in self.sql("SELECT TABLE_NAME FROM information_schema.VIEWS "
                                            "WHERE TABLE_SCHEMA = 'slurm_acct_db' ORDER BY 1")]
        shown = [self.sql(f"SHOW CREATE VIEW slurm_acct_db.`{name.replace('`', '``')}`") for name in views]
        return shown, self.sql("SELECT * FROM mysql.global_priv ORDER BY User, Host"), self.sql(
            "SELECT Host, Db, User, Table_name, Grantor, Table_priv FROM mysql.tables_priv ORDER BY Db, User, Table_name")

    def views(self):
        return sorted(name for name, in self.sql(
            "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'slurm_acct_db'"))

    def test_the_user_reads_the_view_and_nothing_else(self):
        self.create()
        self.assertEqual([["information_schema"], ["slurm_acct_db"]], self.ask("SHOW DATABASES"))
        self.assertEqual([["user_job_view"]], self.ask("SHOW TABLES"))
        self.assertGreater(len(self.ask("SELECT * FROM user_job_view")), 20)
        for text in ("SELECT * FROM sandbox_job_table", "SELECT * FROM sandbox_assoc_table", "SELECT * FROM user_table",
                     "SELECT * FROM cluster_table", "SELECT * FROM mysql.user", "SELECT * FROM mysql.global_priv",
                     "INSERT INTO user_job_view (id_user, id_job, job_name) VALUES (1, 1, 'x')",
                     "UPDATE user_job_view SET id_user = 0", "DELETE FROM user_job_view",
                     "DROP VIEW user_job_view", "CREATE TABLE mine (x INT)", "CREATE VIEW mine AS SELECT 1",
                     "CREATE OR REPLACE VIEW user_job_view AS SELECT 1", "SHOW CREATE VIEW user_job_view",
                     "GRANT SELECT ON user_job_view TO 'slurm'@'127.0.0.1'", "CREATE DATABASE mine",
                     "SELECT LOAD_FILE('/etc/passwd') FROM user_job_view, mysql.user"):
            self.denied(text)

    def test_the_view_tells_the_jobs_that_sacct_tells(self):
        self.create()
        fields = "CONCAT_WS('|', id_job, user, account, `partition`)"

        def sacct():
            return {*self.slurm.lines("sacct", "-aXDnP", "-S", "2020-01-01", "-o", "jobidraw,user,account,partition")}

        def look():
            before = sacct()
            seen = {row[0] for row in self.ask(f"SELECT {fields} FROM user_job_view")}
            ran = {row[0] for row in self.ask(f"SELECT {fields} FROM user_job_view WHERE time_start > 0 AND "
                                              "nodes_alloc > 0 AND account <> ''")}
            return before == sacct() and len(ran) > 20 and (before, seen, ran)
        told, seen, ran = wait_until(look, "most jobs are told, and nothing changes")
        # Of jobs that never began, sacct leaves out those that were held, and tells each task of an array; of a
        # requeued one 20.11 has a row without an account, which it leaves out too.
        plain = {line for line in told if "_" not in line.split("|")[0]}
        self.assertEqual((ran - told, plain - seen), (set(), set()))

    def test_the_columns_that_were_always_there_come_first(self):
        self.create()
        columns = [row[0] for row in self.ask("SHOW COLUMNS FROM user_job_view")]
        self.assertEqual(["id_user", "id_job", "job_name"], columns[:3])
        self.assertEqual(["user", "cluster"], columns[-2:])
        user = self.slurm.run("id", "-u", "alice").stdout.strip()
        self.assertEqual([["alice"]], self.ask(f"SELECT DISTINCT user FROM user_job_view WHERE id_user = {user}"))

    def test_to_do_it_twice_changes_nothing(self):
        first = self.create()
        before = self.state()
        second = self.create()
        self.assertEqual(before, self.state())
        without_user = [line for line in first.stdout.splitlines() if not line.startswith("CREATE USER")]
        self.assertEqual(without_user, second.stdout.splitlines())
        third = self.admin("create-view")  # the user is there: no password is needed
        self.assertEqual(before, self.state())
        self.assertNotIn("IDENTIFIED BY", third.stdout)

    def test_a_dry_run_prints_the_same_and_changes_nothing(self):
        before = self.state()
        tried = self.create("--dry-run")
        self.assertEqual(before, self.state())
        self.assertIn("IDENTIFIED BY '…';", tried.stdout)
        self.assertEqual(tried.stdout, self.create().stdout)
        made = self.state()
        self.assertIn("DROP VIEW IF EXISTS `slurm_acct_db`.`user_job_view`;", self.admin("drop-view", "--dry-run").stdout)
        self.assertEqual(made, self.state())

    def test_what_a_dry_run_prints_is_sql_that_does_it(self):
        printed = self.create("--dry-run").stdout
        self.sql(printed.replace("'…'", "'" + self.password.replace("\\", "\\\\").replace("'", "''") + "'"))
        by_hand = self.state()
        self.create()
        self.assertEqual(by_hand, self.state())
        self.assertGreater(len(self.ask("SELECT * FROM user_job_view")), 20)

    def test_another_password_takes_the_place_of_the_first(self):
        self.create()
        old, self.password = self.password, "another"
        self.file = self.write("password2", self.password)
        self.assertIn("ALTER USER 'sonde'@'localhost' IDENTIFIED BY '…';", self.create().stdout)
        self.assertEqual([["1"]], self.ask("SELECT 1"))
        self.password = old
        self.denied("SELECT 1")

    def test_further_clusters_have_views_of_their_own(self):
        self.second_cluster()
        self.create()
        self.assertEqual(["second_user_job_view", "user_job_view"], self.views())
        self.assertEqual([["sandbox"]], self.ask("SELECT DISTINCT cluster FROM user_job_view"))
        self.assertEqual([["0"]], self.ask("SELECT COUNT(*) FROM second_user_job_view"))
        self.admin("drop-view")
        self.create("--cluster", "second")
        self.assertEqual(["user_job_view"], self.views())
        self.assertEqual([["0"]], self.ask("SELECT COUNT(*) FROM user_job_view"))
        self.create()  # the first name stays with whom it belongs to
        self.assertEqual(["sandbox_user_job_view", "user_job_view"], self.views())
        self.assertEqual([["0"]], self.ask("SELECT COUNT(*) FROM user_job_view"))
        self.assertEqual([["sandbox"]], self.ask("SELECT DISTINCT cluster FROM sandbox_user_job_view"))

    def test_a_hostile_cluster_name_is_a_name(self):
        self.sql("CREATE DATABASE victim")
        self.later("DROP DATABASE victim")
        quoted = self.copied_cluster(HOSTILE)
        self.create()
        self.assertEqual(sorted([f"{HOSTILE}_user_job_view".replace("\\", "\\\\"), "user_job_view"]), self.views())
        row, = self.ask(f"SELECT id_job, cluster FROM `{quoted}_user_job_view`")
        self.assertEqual(HOSTILE.replace("\\", "\\\\"), row[1])  # as the client prints it
        self.assertIn(["victim"], self.sql("SHOW DATABASES"))
        self.admin("drop-view")
        self.assertEqual([], self.views())

    def test_a_cluster_that_cannot_have_a_view_is_left_out_and_told(self):
        self.sql("USE slurm_acct_db; CREATE TEMPORARY TABLE c AS SELECT * FROM cluster_table WHERE name = 'sandbox';"
                 "UPDATE c SET name = 'bare'; INSERT INTO cluster_table SELECT * FROM c;"
                 "UPDATE c SET name = 'odd\x1b[2J'; INSERT INTO cluster_table SELECT * FROM c")
        self.later("DELETE FROM slurm_acct_db.cluster_table WHERE name <> 'sandbox'")
        done = self.create()
        self.assertIn('the cluster "bare" is left out', done.stderr)
        self.assertIn(r'the cluster "odd\x1b[2J" is left out', done.stderr)
        self.assertEqual(["user_job_view"], self.views())
        done = self.create("--cluster", "bare", check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("no tables of its jobs", done.stderr)
        self.assertEqual(1, self.create("--cluster", "nowhere", check=False).returncode)

    def test_drop_takes_all_of_it_away_and_can_be_repeated(self):
        before = self.state()
        self.second_cluster()
        self.create()
        self.admin("drop-view")
        self.assertEqual(before, self.state())
        self.assertIn("Nothing of it is there", self.admin("drop-view").stdout)

    def test_the_view_and_user_of_petricore_are_taken_over(self):
        self.sql("CREATE VIEW slurm_acct_db.user_job_view AS SELECT id_user, id_job, job_name FROM "
                 "slurm_acct_db.sandbox_job_table; CREATE USER petricore@localhost IDENTIFIED BY 'old';"
                 "GRANT SELECT ON slurm_acct_db.user_job_view TO petricore@localhost")
        self.later("DROP USER IF EXISTS petricore@localhost; DROP VIEW IF EXISTS slurm_acct_db.user_job_view")
        done = self.admin("drop-view", "--user", "petricore")  # made by somebody else
        self.assertIn("stays", done.stderr)
        self.assertEqual("", done.stdout)
        self.assertEqual(["user_job_view"], self.views())
        self.second_cluster("aaa")
        self.create("--user", "petricore")
        self.assertEqual(["aaa_user_job_view", "user_job_view"], self.views())
        self.assertGreater(len(self.ask("SELECT id_user, id_job, job_name FROM user_job_view WHERE cluster = 'sandbox'",
                                        user="petricore")), 20)
        self.admin("drop-view", "--user", "petricore")
        self.assertEqual([], self.sql("SELECT User FROM mysql.user WHERE User = 'petricore'"))

    def test_a_view_of_somebody_else_is_left_alone(self):
        self.sql("CREATE VIEW slurm_acct_db.user_job_view AS SELECT 1 AS x")
        self.later("DROP VIEW slurm_acct_db.user_job_view")
        before = self.state()
        done = self.create(check=False)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("that sonde has not made", done.stderr)
        self.admin("drop-view")
        self.assertEqual(before, self.state())

    def test_a_user_who_may_do_more_is_left_alone(self):
        self.sql("CREATE USER other@localhost; GRANT SELECT ON slurm_acct_db.cluster_table TO other@localhost")
        self.later("DROP USER other@localhost")
        before = self.state()
        for flags in (("--user", "other"), ("--user", "root"), ("--user", "slurm", "--host", "127.0.0.1")):
            done = self.create(*flags, check=False)
            self.assertEqual((1, ""), (done.returncode, done.stdout))
            self.assertIn("may do more", done.stderr)
            done = self.admin("drop-view", *flags)
            self.assertIn("stays", done.stderr)
            self.assertEqual(before, self.state())

    def test_a_user_of_two_databases_stays_for_the_other(self):
        self.sql("CREATE DATABASE other_acct_db; USE other_acct_db; CREATE VIEW user_job_view AS SELECT 1 AS x")
        self.later("DROP DATABASE other_acct_db")
        self.create()
        self.sql("GRANT SELECT ON other_acct_db.user_job_view TO sonde@localhost")
        self.later("DROP USER IF EXISTS sonde@localhost")
        self.create()
        done = self.admin("drop-view")
        self.assertIn("REVOKE SELECT ON `slurm_acct_db`.`user_job_view`", done.stdout)
        self.assertIn("stays", done.stderr)
        self.assertEqual([["1"]], self.sql("SELECT x FROM other_acct_db.user_job_view", "-usonde", f"-p{self.password}"))

    def test_what_is_wrong_is_said(self):
        for flags, status, words in (
                (("--database", "mysql"), 1, "slurmdbd has no tables in the database \"mysql\""),
                (("--database", "nowhere"), 1, "slurmdbd has no tables in the database \"nowhere\""),
                (("--admin.user", "nobody"), 1, "run this as root on the database's host"),
                (("--user", ""), 2, "cannot be empty"),
                (("--user", "a\nb"), 2, "control characters"),
                (("--database", "a\x1bb"), 2, "cannot be a name"),
                (("--server", "db.example"), 2, "not both"),
                (("--timeout", "0"), 2, "--timeout"),
                (("--password-file", self.directory / "none"), 1, "cannot read the password file"),
                (("--password-file", self.write("empty", "")), 2, "holds no password")):
            done = self.create(*flags, check=False)
            self.assertEqual((status, ""), (done.returncode, done.stdout), done.stderr)
            self.assertIn(words, done.stderr)
        done = self.admin("create-view", check=False)
        self.assertEqual(2, done.returncode)
        self.assertIn("give --password-file", done.stderr)
        done = self.create(by=("--server", "db.example"), check=False)
        self.assertEqual(2, done.returncode)
        self.assertIn("in clear", done.stderr)
        done = self.create(by=("--socket", str(self.directory / "none")), check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("cannot be asked", done.stderr)

    def test_an_administrator_comes_by_the_network_too(self):
        secret = secrets.token_hex(8)
        server = ("--server", "127.0.0.1", "--port", self.slurm.env["SANDBOX_MARIADB_PORT"], "--admin.user", "boss",
                  "--admin.password-file", str(self.write("boss", secret)))
        self.sql(f"CREATE USER boss@127.0.0.1 IDENTIFIED BY '{secret}'")
        self.later("DROP USER boss@127.0.0.1")
        done = self.create(by=server, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("may not see them", done.stderr)
        self.sql("GRANT SELECT ON slurm_acct_db.* TO boss@127.0.0.1")
        done = self.create(by=server, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("run this as root on the database's host", done.stderr)
        self.assertNotIn(secret, done.stderr)
        self.sql("GRANT ALL ON *.* TO boss@127.0.0.1 WITH GRANT OPTION")
        self.create("--host", "127.0.0.1", by=server)
        told = self.slurm.run("mariadb", "--no-defaults", "--skip-ssl", "-NB", "-h127.0.0.1",
                              f"-P{self.slurm.env['SANDBOX_MARIADB_PORT']}", "-usonde", f"-p{self.password}",
                              "slurm_acct_db", "-e", "SELECT COUNT(*) FROM user_job_view").stdout
        self.assertGreater(int(told), 20)
        self.admin("drop-view", "--host", "127.0.0.1", by=server)
        self.assertEqual([], self.sql("SELECT User FROM mysql.user WHERE User = 'sonde'"))


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (Views, unittest.TestCase), {"suite": suite})

if __name__ == "__main__":
    import tap
    tap.main()
