// Passes on the answer of another node, which holds the session of the request: as it comes, and no faster than
// the client reads. Headers of this node (rate limit, origin) are added. When the client leaves, or loses its
// rights, the request at the holder is cancelled.

import type { GatewayError } from '../../domain/errors/errors.ts';
import { type ForwardedAnswer, type ForwardedHeaders, NotHolder } from '../../domain/nodes/forwarding.ts';
import type { ForwardJob } from '../replies/reply.ts';
import { commonHeaders, latin1Of, SMALL_BYTES } from '../replies/respond.ts';
import { limitReader } from '../replies/unread-answers.ts';
import { ClientGone, type HttpContext } from '../request.ts';
import { EVENT_STREAM_TYPE, type EventStreams } from '../sse/event-stream.ts';

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
 * Resolves when the answer is written, or its client has left. Rejects with the error of an answer that has not
 * begun, or NotHolder.
 */
export function relay(context: HttpContext, job: ForwardJob, streams: EventStreams): Promise<void> {
  const { res: response, state } = context;
  state.forwardedTo = job.node;
  if (response.destroyed) return Promise.reject(new ClientGone());
  return new Promise((resolve, reject) => {
    let release = (): void => {};
    /** Bytes of the body that are to come; infinite for a stream. */
    let left = Number.POSITIVE_INFINITY;
    const settle = (reason?: Error): void => {
      release();
      if (reason === undefined) resolve();
      else reject(reason);
    };
    /** An answer that has begun can only break off; `isComplete`: as an event stream may end. */
    const stop = (reason: Error, isComplete: boolean): void => {
      const isBegun = response.headersSent;
      if (isBegun && isComplete && left === Number.POSITIVE_INFINITY) response.end();
      else if (isBegun) response.destroy();
      settle(isBegun ? undefined : reason);
    };
    const answer: ForwardedAnswer = {
      head: (status, headers) => {
        if (response.destroyed) return;
        if (status >= 400 && status < 500 && status !== 429) count(job);
        left = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY);
        const isStream =
          headers['content-type'] === EVENT_STREAM_TYPE && headers['content-length'] === undefined;
        writeHead(context, status, headers);
        if (!isStream) return;
        limitReader(response, streams.unreadMs);
        response.flushHeaders();
        release = streams.track({ keepAlive: () => {}, revoke }, context);
      },
      data: (part) => {
        left -= part.length;
        if (response.destroyed) return true;
        // The last part ends the answer: with the head, in one write.
        if (left === 0 && part.length <= SMALL_BYTES) response.end(latin1Of(part), 'latin1');
        else if (response.write(part)) return true;
        if (response.writableLength > 0) limitReader(response);
        return left === 0;
      },
      end: () => {
        if (!response.writableEnded) response.end();
        settle();
      },
      failed: (error) => stop(job.failure(error), false),
      notHolder: (sinceMs) => stop(new NotHolder(undefined, sinceMs), false),
    };
    const forwarding = job.forward(answer);
    const revoke = (reason: GatewayError): void => {
      forwarding.cancel();
      stop(reason, true);
    };
    response.on('drain', () => forwarding.resume());
    job.onLost((reason) => {
      forwarding.cancel();
      stop(reason, true);
    });
  });
}

function writeHead({ res, state }: HttpContext, status: number, headers: ForwardedHeaders): void {
  const instanceId = headers['x-instance-id'];
  if (typeof instanceId === 'string') state.instanceId = instanceId;
  // Only `initialize` is answered with one.
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
