// What the client costs above the generated stub: the same question asked both ways, in turns, in one run.
//
//     npm run bench                       (a server listens on PORTCULLIS_ADDRESS, by default 127.0.0.1:50051)
//     npm run bench -- ROUNDS LIMIT       exit code 1 when the ratio is above LIMIT, such as 1.10
//
// Prints the medians of both and their ratio. One call at a time, so that a latency is that of a call alone.

import * as grpc from "@grpc/grpc-js";

import { Portcullis } from "@portcullis/sdk";
import {
  CheckMessagesRequest,
  type CheckMessagesResponse,
  OffsetEncoding,
  PolicyDecisionServiceClient,
} from "@portcullis/sdk/v1";

const ROUNDS = Number(process.argv[2] ?? 4_000);
const LIMIT = Number(process.argv[3] ?? Infinity);
const WARM_UP = 1_000;
const TEXT = "Please sort the notes of the meeting by speaker, and write a short summary of each part. ".repeat(11);

const address = process.env["PORTCULLIS_ADDRESS"] ?? "127.0.0.1:50051";
const portcullis = new Portcullis({ address, context: { agentId: "bench" } });
const stub = new PolicyDecisionServiceClient(address, grpc.credentials.createInsecure());

function raw(): Promise<CheckMessagesResponse> {
  const request = CheckMessagesRequest.create({
    messages: [{ role: "user", text: TEXT }],
    context: { agentId: "bench" },
    offsetEncoding: OffsetEncoding.UTF16,
  } as never);
  return new Promise((done, fail) => {
    stub.checkMessages(request, new grpc.Metadata(), { deadline: Date.now() + 5_000 }, (error, answer) =>
      error ? fail(error) : done(answer),
    );
  });
}

const client = () => portcullis.checkMessages([{ role: "user", text: TEXT }]);

async function micros(ask: () => Promise<unknown>): Promise<number> {
  const begin = process.hrtime.bigint();
  await ask();
  return Number(process.hrtime.bigint() - begin) / 1_000;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

const [rawTimes, clientTimes]: [number[], number[]] = [[], []];
for (let round = 0; round < WARM_UP + ROUNDS; round++) {
  // Each goes first every other time.
  const pairs = [
    [raw, rawTimes],
    [client, clientTimes],
  ] as const;
  for (const [ask, times] of round % 2 === 0 ? pairs : [...pairs].reverse()) {
    const time = await micros(ask);
    if (round >= WARM_UP) times.push(time);
  }
}
const [rawMedian, clientMedian] = [median(rawTimes), median(clientTimes)];
console.log(`rounds ${ROUNDS}, text of ${TEXT.length} bytes`);
console.log(`stub   median ${rawMedian.toFixed(1)} us`);
console.log(`client median ${clientMedian.toFixed(1)} us`);
const ratio = clientMedian / rawMedian;
console.log(`ratio  ${ratio.toFixed(3)}`);
if (!(ratio <= LIMIT)) {
  console.error(`the ratio ${ratio.toFixed(3)} is above ${LIMIT}`);
  process.exitCode = 1;
}
stub.close();
portcullis.close();
