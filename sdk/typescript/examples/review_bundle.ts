// Uploads a skill for review and follows it until nothing more happens by itself.
import { Decision, Portcullis, SubmissionStatus } from "@portcullis/sdk";

const portcullis = new Portcullis({ submitter: "ada" });
const path = process.argv[2] ?? ".";

const answer = await portcullis.reviewBundle(path, {
  onProgress: ({ phase, bytes, totalBytes }) => console.error(`${phase} ${bytes} of ${totalBytes}`),
});
console.log(SubmissionStatus[answer.status], Decision[answer.decision]);
for (const { file, line, reason } of answer.checks?.staticSecurity?.findings ?? [])
  console.log(`${file}:${line} ${reason}`);

for await (const { submission, final } of portcullis.watchSubmission(answer.submissionId)) {
  console.log(SubmissionStatus[submission.status], final ? "settled" : "goes on");
}
