// The limits of a view: how long a tool may take, how large its result may be, and how often each caller may call
// it. They protect the server, so they hold for admins, too. Source: ADR 232, ADR 173.

import { countedIdOf } from '../../../domain/accounts/principal.ts';
import type { SourcedEvent } from '../../../domain/calls/exchange.ts';
import { GatewayError } from '../../../domain/errors/errors.ts';
import { isJsonObject, type JsonObject, JsonText } from '../../../domain/json/json.ts';
import { hasMoreValues } from '../../../domain/json/json-scanner.ts';
import { LIMITS } from '../../../domain/limits.ts';
import { WindowCounter } from '../../../domain/memory/window-counter.ts';
import { cutBytes } from '../../../domain/text.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import type { CallLimiter, CountedCall, ViewLimit } from '../../../domain/views/view.ts';

/** The most pairs of caller and tool whose calls are counted. A forgotten one begins again. */
const MAX_COUNTED = 10_000;

/** Counts calls on this node alone, in windows of a minute from the first call. */
export class CallCounts implements CallLimiter {
  readonly #clock: Clock;
  readonly #windows = new WindowCounter({ windowSeconds: 60, keys: MAX_COUNTED });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  take(key: string, limit: number): CountedCall {
    const { count, endsInMs } = this.#windows.add(key, this.#clock.now(), 1, limit);
    return count > limit ? { retryAfterSeconds: Math.ceil(endsInMs / 1_000) } : {};
  }
}

interface LimitedCall {
  readonly view: string;
  /** The listed name. */
  readonly tool: string;
  readonly callerId: string;
  readonly most: number;
}

/** Counts a call by view, tool and principal; undefined where it is counted already. Throws RATE_LIMIT_EXCEEDED. */
export function countCall(limiter: CallLimiter, call: LimitedCall): Promise<void> | undefined {
  const { view, tool, callerId, most } = call;
  const counted = limiter.take(`${view}/${tool}/${countedIdOf(callerId)}`, most);
  if (counted instanceof Promise) return counted.then((later) => refuseOver(later, call));
  refuseOver(counted, call);
  return undefined;
}

function refuseOver({ retryAfterSeconds }: CountedCall, { tool, most }: LimitedCall): void {
  if (retryAfterSeconds === undefined) return;
  const message = `The tool "${tool}" may be called ${most} times a minute by each caller.`;
  throw new GatewayError('RATE_LIMIT_EXCEEDED', message, { retryAfterSeconds });
}

/** The answer with a result within the limit. */
export function boundedAnswer(sourced: SourcedEvent, { result_bytes: most }: ViewLimit): SourcedEvent {
  const { event } = sourced;
  if (most === undefined || event.kind !== 'result' || event.result.bytes.length <= most) return sourced;
  return { ...sourced, event: { ...event, result: JsonText.ofValue(boundedResult(event.result, most)) } };
}

/** The bytes of a block of text without its text. */
const BLOCK_BYTES = '{"type":"text","text":""},'.length;

/** Blocks of text are cut, with a last line about the rest. Anything else that is too large becomes an error. */
function boundedResult(result: JsonText, most: number): JsonObject {
  const { length } = result.bytes;
  const isTooLarge = length > LIMITS.parsedMessageBytes || hasMoreValues(result.bytes, LIMITS.parsedAtOnce);
  const value = isTooLarge ? undefined : result.exactValue;
  const texts =
    isJsonObject(value) && value.structuredContent === undefined ? textBlocksIn(value.content) : undefined;
  const others = texts === undefined ? 0 : othersIn(Object(value), texts);
  if (texts === undefined || others > most) {
    const text = `The result of ${length} bytes is larger than the ${most} bytes that this server returns. Ask for less.`;
    return { content: [{ type: 'text', text }], isError: true };
  }
  const kept: JsonObject[] = [];
  let left = most - others;
  let omitted = 0;
  for (const block of texts) {
    const text = cutBytes(Buffer.from(block.text), Math.max(left, 0));
    const bytes = Buffer.byteLength(text);
    omitted += Buffer.byteLength(block.text) - bytes;
    left -= bytes + BLOCK_BYTES;
    if (text !== '') kept.push({ ...block, text });
  }
  if (omitted === 0 && left >= -BLOCK_BYTES) return Object(value); // only its form in JSON is larger
  const all = texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  const rest = `[${omitted} of ${all} bytes are left out]`;
  const last = kept.at(-1);
  const content = [
    ...kept.slice(0, -1),
    { ...last, type: 'text', text: `${String(last?.text ?? '')}\n${rest}` },
  ];
  return { ...(isJsonObject(value) ? value : {}), content };
}

/** The bytes of everything in a result but its texts. */
function othersIn(value: JsonObject, texts: readonly TextBlock[]): number {
  const ofBlocks = texts
    .map(({ type: _, text: __, ...others }) => others)
    .filter((others) => Object.keys(others).length > 0);
  return Buffer.byteLength(JSON.stringify({ ...value, content: ofBlocks }));
}

type TextBlock = JsonObject & { readonly text: string };

/** The result is undefined unless all blocks are texts. */
function textBlocksIn(content: unknown): readonly TextBlock[] | undefined {
  if (!Array.isArray(content)) return undefined;
  const blocks: readonly unknown[] = content;
  return blocks.every(isTextBlock) ? blocks : undefined;
}

function isTextBlock(block: unknown): block is TextBlock {
  return isJsonObject(block) && block.type === 'text' && typeof block.text === 'string';
}
