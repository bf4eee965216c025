"""Processes die, the user interrupts: the job goes on, counts every example once and leaves no process behind."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

import adamant
import held_thread

EPOCHS = 6
EXAMPLES = 20000
TRAIN = f"{{digits: {{seed: 1, examples: {EXAMPLES}}}}}"


class FaultTest(adamant.TestCase):

    def long_job(self, **values):
        return self.job(**{"epochs": EPOCHS, "train": TRAIN, **values})

    def kill_during_training(self, name, seed, **values):
        """SIGKILL to one member at a seeded moment of the second epoch."""
        run = self.run_in(f"{name}-{seed}").train(self.long_job(**values))
        run.await_epoch(1)
        time.sleep(random.Random(seed).uniform(0, 0.2))
        self.assertTrue(run.kill(name))
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, EPOCHS, EXAMPLES)
        self.assertEqual(int(run.rows()[-1]["examples_left"]), 0)
        self.assertEqual(int(run.rows()[-1]["restarts"]), 1)
        self.assertGreater(float(run.rows()[-1]["top1"]), 0.8)

    def test_a_killed_worker_is_replaced(self):
        self.kill_during_training("worker-1", seed=1)

    def test_the_only_worker_is_replaced(self):
        self.kill_during_training("worker-0", seed=2, workers=1)

    def test_a_killed_parameter_server_comes_back_with_its_shards(self):
        self.kill_during_training("parameter-server-0", seed=3, copies=1)

    def test_another_takes_over_from_a_killed_parameter_server(self):
        self.kill_during_training("parameter-server-0", seed=3)

    def test_the_only_data_server_is_replaced(self):
        self.kill_during_training("data-server-0", seed=4)

    def test_parts_of_a_killed_data_server_pass_to_another(self):
        self.kill_during_training("data-server-1", seed=5, data_servers=2)

    def test_every_role_may_die_in_one_job(self):
        run = self.run_in().train(self.long_job(data_servers=2, epochs=8, copies=1))
        rng = random.Random(6)
        for epoch, name in enumerate(("worker-0", "parameter-server-1", "data-server-0", "worker-1"), start=1):
            run.await_epoch(epoch)
            time.sleep(rng.uniform(0, 0.1))
            run.kill(name)
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 8, EXAMPLES)

    def test_a_run_goes_on_after_kill_9_of_the_whole_group(self):
        run = self.run_in().train(self.long_job())
        rng = random.Random(7)
        for epoch in (1, 3):
            run.await_epoch(epoch)
            time.sleep(rng.uniform(0, 0.2))
            run.kill_all()
            run.resume()
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, EPOCHS, EXAMPLES)
        self.assertGreater(float(run.rows()[-1]["top1"]), 0.8)

    def test_a_worker_with_a_thread_that_hangs_is_replaced(self):
        job = self.long_job(epochs=4)
        job.write_text(job.read_text() + "  detection: {hang: 10s}\n")
        run = self.run_in().train(job)
        run.await_epoch(1)
        worker = run.members()["worker-1"]
        try:
            thread = held_thread.hold_busiest_thread(worker)
        except (PermissionError, NotImplementedError):
            self.skipTest("needs to trace processes, on x86-64")
        begin = time.monotonic()
        held_thread.await_end(thread)
        self.assertGreater(time.monotonic() - begin, 9)
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assertIn("worker-1 made no progress for 10 s", output)
        self.assert_counted_once(run, 4, EXAMPLES)
        self.assertEqual(int(run.rows()[-1]["restarts"]), 1)

    def test_a_failure_rule_ends_the_job_and_is_named(self):
        job = self.long_job(epochs=1000)
        rule = "    failureRules: [{cause: Exit, exitCodes: [137], roles: [Worker], action: FailJob}]\n"
        job.write_text(job.read_text() + rule)
        run = self.run_in().train(job)
        run.await_epoch(1)
        run.kill("worker-1")
        code, output = run.wait()
        self.assertNotEqual(code, 0, output)
        self.assertIn("worker-1 was killed by signal 9: spec.runPolicy.failureRules[0] fails the job", output)

    def test_no_process_outlives_a_killed_controller(self):
        run = self.run_in().train(self.long_job(epochs=1000))
        run.await_epoch(1)
        pids = list(run.members().values())
        self.assertEqual(len(pids), 5)
        run.process.send_signal(signal.SIGKILL)
        self.assert_all_gone(pids, seconds=3)

    def test_ctrl_c_stops_all_within_three_seconds_and_the_run_can_be_resumed(self):
        run = self.run_in().train(self.long_job())
        run.await_epoch(1)
        pids = list(run.members().values())
        begin = time.monotonic()
        run.process.send_signal(signal.SIGINT)
        code, output = run.wait(timeout=10)
        self.assertLess(time.monotonic() - begin, 3)
        self.assertEqual(code, 3, output)
        self.assertIn("--resume", output)
        self.assert_all_gone(pids, seconds=0.1)
        self.assertIn("stopped by SIGINT (Ctrl-C)", adamant.adamant("status", run.folder).stdout)
        evaluated = adamant.adamant("eval", run.folder)
        self.assertEqual(evaluated.returncode, 2, evaluated.stdout)
        self.assertIn(f"{run.folder} holds no model yet", evaluated.stderr)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, EPOCHS, EXAMPLES)

    def least_processor_seconds(self, buckets):
        """Of two runs: on a busy machine the same work takes more."""
        return min(self.processor_seconds(buckets, run) for run in (1, 2))

    def processor_seconds(self, buckets, number):
        """What all processes of a job use that trains the same few batches whatever else the machine does."""
        job = self.job(epochs=2)
        job.write_text(job.read_text().replace("buckets: 8", f"buckets: {buckets}"))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code, output = self.run_in(f"run-{buckets}-{number}").train(job).wait(timeout=120)
        self.assertEqual(code, 0, output)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def test_starts_and_stops_cost_no_more_than_in_proportion_to_the_buckets(self):
        few, some, many = (self.least_processor_seconds(buckets) for buckets in (8, 1500, 3000))
        print(f"  CPU seconds: {few:.2f}, {some:.2f}, {many:.2f}", file=sys.stderr)
        self.assertLess(many - few, 3 * (some - few))  # twice as much if linear, 4 times if quadratic

    def test_a_reader_that_leaves_stops_the_run_and_it_can_be_resumed(self):
        run = self.run_in()
        with open(self.folder / "errors", "w+") as errors:
            run.process = subprocess.Popen(
                [adamant.binary_folder() / "adamant", "train", self.long_job(), "--run-dir", run.folder],
                stdout=subprocess.PIPE, stderr=errors, text=True)
            self.assertIn("tiny: ", run.process.stdout.readline())
            run.process.stdout.close()
            self.assertEqual(run.process.wait(timeout=60), 3)
            errors.seek(0)
            output = errors.read()
        self.assertIn("stopped by SIGPIPE (nobody reads the output any more)", output)
        self.assertIn(f"go on with: adamant train --resume {run.folder}", output)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, EPOCHS, EXAMPLES)

    def test_nobody_is_sent_to_a_folder_that_is_gone(self):
        run = self.run_in().train(self.long_job())
        run.await_epoch(1)
        run.folder.rename(self.folder / "elsewhere")
        run.process.send_signal(signal.SIGINT)
        code, output = run.wait(timeout=20)
        self.assertNotEqual(code, 0, output)
        self.assertNotIn("go on with", output)
        self.assertNotIn("goes on from here", output)
        self.assertIn(f"the folder of the run is not there any more: {run.folder}", output)

    def test_a_folder_that_is_removed_or_renamed_ends_the_run(self):
        elsewhere = self.folder / "elsewhere"
        for how, gone in (("renamed", "folder"), ("removed", "folder"), ("replaced", "folder"), ("data removed", "data")):
            with self.subTest(how=how):
                run = self.run_in(how.replace(" ", "-")).train(self.long_job())
                run.await_epoch(1)
                pids = list(run.members().values())
                place = run.folder / "data" if gone == "data" else run.folder
                place.rename(elsewhere)  # at once, so that nobody sees half of it
                if how == "replaced":
                    run.folder.mkdir()
                if "removed" in how:
                    shutil.rmtree(elsewhere, ignore_errors=True)
                code, output = run.wait(timeout=60)
                self.assertEqual(code, 4, output)
                self.assertIn(f"the {gone} of the run is not there any more: {place}", output)
                self.assert_all_gone(pids, seconds=0)
                self.assertEqual(list(place.iterdir()) if place.exists() else [], [])
                if how == "renamed":
                    again = self.run_in("elsewhere").resume()
                    self.assertEqual(again.wait()[0], 0)
                    self.assert_counted_once(again, EPOCHS, EXAMPLES)
                shutil.rmtree(elsewhere, ignore_errors=True)

    def test_ctrl_c_works_when_members_are_stuck(self):
        run = self.run_in().train(self.long_job())
        run.await_epoch(1)
        pids = list(run.members().values())
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10)[0], 3)
        self.assertLess(time.monotonic() - begin, 3)
        self.assert_all_gone(pids, seconds=0.1)

    def test_ctrl_c_works_before_the_first_epoch(self):
        run = self.run_in().train(self.long_job())
        while not run.members():
            time.sleep(0.005)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=10)[0], 3)
        code, output = run.resume().wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, EPOCHS, EXAMPLES)

    def test_a_spent_restart_budget_fails_the_job_with_a_message(self):
        run = self.run_in().train(self.long_job(restarts=0))
        run.await_epoch(1)
        self.assertTrue(run.kill("worker-0"))
        code, output = run.wait()
        self.assertEqual(code, 1, output)
        self.assertIn("worker-0 was killed by signal 9", output)
        self.assertIn("restartBudget", output)


if __name__ == "__main__":
    unittest.main()
