// Passes on the answer of another node, which holds the session of the request: as it comes, and no faster than
// the client reads. Headers of this node (rate limit, origin) are added. When the client leaves, or loses its
// rights, the request at the holder is cancelled.

import type { GatewayError } from '../../domain/errors/errors.ts';
import { EVENT_STREAM_TYPE } from '../../domain/mcp/media-types.ts';
import { type Forwarding, NotHolder } from '../../domain/nodes/forwarding.ts';
import type { HttpHeaders } from '../../domain/text.ts';
import { ClientGone } from '../client-gone.ts';
import type { HttpContext } from '../context.ts';
import type { ForwardJob } from '../replies/reply.ts';
import { commonHeaders, latin1Of, SMALL_REPLY_BYTES } from '../replies/respond.ts';
import { limitReader } from '../replies/unread-answers.ts';
import type { EventStreams } from '../sse/event-stream.ts';

/** Headers of the holder's answer that its client gets; all others are those of this node, or of one connection. */
const PASSED = [
  'content-type',
  'content-length',
  'cache-control',
  'x-accel-buffering',
  'mcp-session-id',
  'retry-after',
  'allow',
] as const;

/**
 * Resolves when the answer is written, or its client has left. Throws the error of an answer that has not
 * begun, or NotHolder.
 */
export async function relay(context: HttpContext, job: ForwardJob, streams: EventStreams): Promise<void> {
  context.state.forwardedTo = job.node;
  if (context.res.destroyed) return;
  return new RelayedAnswer(context, job, streams).over;
}

/** One try to answer the request: another one may follow on the same response, so this one leaves no listener there. */
class RelayedAnswer {
  readonly #context: HttpContext;
  readonly #job: ForwardJob;
  readonly #streams: EventStreams;
  readonly #over = Promise.withResolvers<void>();
  readonly over: Promise<void> = this.#over.promise;
  readonly #forwarding: Forwarding;
  /** Bytes of the body that are to come; infinite for a stream. */
  #left = Number.POSITIVE_INFINITY;
  #untrack: (() => void) | undefined;
  readonly #resume = (): void => this.#forwarding.resume();
  #offLost: () => void = () => {};
  #isOver = false;

  constructor(context: HttpContext, job: ForwardJob, streams: EventStreams) {
    this.#context = context;
    this.#job = job;
    this.#streams = streams;
    this.#forwarding = job.forward({
      head: (status, headers) => this.#head(status, headers),
      data: (part) => this.#data(part),
      end: () => this.#end(),
      failed: (error) => this.#breakOff(job.failure(error)),
      notHolder: (sinceMs) => this.#breakOff(new NotHolder(undefined, sinceMs)),
    });
    if (this.#isOver) return; // the try has ended at once
    context.res.on('drain', this.#resume);
    this.#offLost = job.onLost((reason) => this.#revoke(reason));
  }

  #head(status: number, headers: HttpHeaders): void {
    const { res: response } = this.#context;
    if (response.destroyed) return;
    if (status >= 400 && status < 500 && status !== 429) count(this.#job);
    const { 'content-type': type, 'content-length': length } = headers;
    this.#left = Number(length ?? Number.POSITIVE_INFINITY);
    writeHead(this.#context, status, headers);
    if (type === EVENT_STREAM_TYPE && length === undefined) this.#beginStream();
  }

  #beginStream(): void {
    const { res: response } = this.#context;
    limitReader(response, this.#streams.unreadMs);
    response.flushHeaders();
    const revoke = (reason: GatewayError) => this.#revoke(reason);
    this.#untrack = this.#streams.track({ keepAlive: () => {}, revoke }, this.#context);
  }

  #data(part: Buffer): boolean {
    const { res: response } = this.#context;
    this.#left -= part.length;
    if (response.destroyed) return true;
    // The last part ends the answer: with the head, in one write.
    if (this.#left === 0 && part.length <= SMALL_REPLY_BYTES) response.end(latin1Of(part), 'latin1');
    else if (response.write(part)) return true;
    if (response.writableLength > 0) limitReader(response);
    return this.#left === 0;
  }

  #end(): void {
    const { res: response } = this.#context;
    if (!response.writableEnded) response.end();
    this.#settle();
  }

  /** The client has left, or may not get the answer any more. */
  #revoke(reason: Error): void {
    this.#forwarding.cancel();
    const { res: response } = this.#context;
    const isStream = response.headersSent && this.#left === Number.POSITIVE_INFINITY;
    if (isStream) this.#end();
    else this.#breakOff(reason);
  }

  /** An answer that has not begun gets another one in its place. */
  #breakOff(reason: Error): void {
    const { res: response } = this.#context;
    const isBegun = response.headersSent;
    if (isBegun) response.destroy();
    this.#settle(isBegun || reason instanceof ClientGone ? undefined : reason);
  }

  #settle(reason?: Error): void {
    this.#isOver = true;
    this.#untrack?.();
    this.#context.res.off('drain', this.#resume);
    this.#offLost();
    if (reason === undefined) this.#over.resolve();
    else this.#over.reject(reason);
  }
}

function writeHead({ res, state }: HttpContext, status: number, headers: HttpHeaders): void {
  const instanceId = headers['x-instance-id'];
  if (typeof instanceId === 'string') state.instanceId = instanceId;
  // Only the answer to `initialize` has this header.
  const sessionId = headers['mcp-session-id'];
  if (typeof sessionId === 'string') state.sessionId = sessionId;
  const passed = commonHeaders(state, headers['cache-control'] !== undefined);
  for (const name of PASSED) {
    const value = headers[name];
    if (typeof value === 'string') passed.push(name, value);
  }
  res.writeHead(status, passed);
}

/** A caller without requests left is refused at its next request. */
function count({ countRefusal }: ForwardJob): void {
  const ignore = (): void => {
    // The refusal of the holder says more than that the limit is reached.
  };
  try {
    void countRefusal()?.catch(ignore);
  } catch {
    ignore();
  }
}
