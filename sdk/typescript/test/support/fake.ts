// A service in this process that answers what a test tells it to: for what a real one does only when it is broken.

import * as grpc from "@grpc/grpc-js";
import {
  CheckMessagesResponse,
  InterceptToolResponse,
  PolicyDecisionServiceService,
  SubmissionServiceService,
  WatchSubmissionResponse,
  type StreamMonitorRequest,
  type StreamMonitorResponse,
} from "@portcullis/sdk/v1";

type Stream = grpc.ServerDuplexStream<StreamMonitorRequest, StreamMonitorResponse>;

export interface Fake {
  readonly address: string;
  /** Metadata of each call, in order, with the name of the call. */
  readonly seen: { call: string; metadata: grpc.Metadata }[];
  /** Ends every connection. */
  stop(): void;
}

export interface Script {
  check?: (
    index: number,
  ) => Partial<CheckMessagesResponse> | grpc.Metadata | { code: grpc.status; metadata?: grpc.Metadata };
  tool?: (request: {
    phase: number;
    argsJson: string;
    resultJson: string;
  }) => Partial<InterceptToolResponse> | { code: grpc.status };
  monitor?: (stream: Stream) => void;
  watch?: (index: number) => (Partial<WatchSubmissionResponse> | { code: grpc.status })[];
  review?: (index: number) => { code: grpc.status };
}

const running: grpc.Server[] = [];

/** Ends those that a test has left behind because it failed. */
export function stopFakes(): void {
  for (const server of running.splice(0)) server.forceShutdown();
}

/** Starts one; each call of a script gets the number of calls before it. */
export async function startFake(script: Script, address = "127.0.0.1:0"): Promise<Fake> {
  const server = new grpc.Server();
  running.push(server);
  const seen: Fake["seen"] = [];
  const count = (call: string) => seen.filter((one) => one.call === call).length;
  const note = (call: string, metadata: grpc.Metadata) => {
    const index = count(call);
    seen.push({ call, metadata });
    return index;
  };
  type Reply = (error: Partial<grpc.StatusObject> | null, answer?: unknown) => void;
  const reply = (told: object, make: (fields: object) => unknown, callback: Reply) => {
    if ("code" in told) callback({ details: "as the test says", ...(told as { code: grpc.status }) });
    else callback(null, make(told));
  };
  server.addService(
    PolicyDecisionServiceService as grpc.ServiceDefinition,
    {
      checkMessages: (call: grpc.ServerUnaryCall<unknown, unknown>, callback: Reply) => {
        const index = note("check", call.metadata);
        reply(script.check?.(index) ?? {}, (fields) => CheckMessagesResponse.fromPartial(fields), callback);
      },
      interceptTool: (
        call: grpc.ServerUnaryCall<{ phase: number; argsJson: string; resultJson: string }, unknown>,
        callback: Reply,
      ) => {
        note("tool", call.metadata);
        reply(script.tool?.(call.request) ?? {}, (fields) => InterceptToolResponse.fromPartial(fields), callback);
      },
      streamMonitor: (stream: Stream) => {
        note("monitor", stream.metadata);
        script.monitor?.(stream);
      },
      reviewBundle: (stream: grpc.ServerReadableStream<unknown, unknown>, callback: Reply) => {
        const index = note("review", stream.metadata);
        stream
          .resume()
          .on("end", () => callback({ details: "as the test says", ...(script.review?.(index) ?? { code: 2 }) }));
      },
    } as unknown as grpc.UntypedServiceImplementation,
  );
  server.addService(
    { watchSubmission: SubmissionServiceService.watchSubmission } as grpc.ServiceDefinition,
    {
      watchSubmission: (stream: grpc.ServerWritableStream<unknown, unknown>) => {
        const index = note("watch", stream.metadata);
        for (const told of script.watch?.(index) ?? []) {
          if ("code" in told) return stream.emit("error", { details: "as the test says", ...told });
          stream.write(WatchSubmissionResponse.fromPartial(told as object));
        }
        stream.end();
        return true;
      },
    } as unknown as grpc.UntypedServiceImplementation,
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { address: `127.0.0.1:${port}`, seen, stop: () => server.forceShutdown() };
}
