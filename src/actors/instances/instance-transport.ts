// The transport of an instance, with what the instance learns from it: its tools, its messages, and the times of
// the last ones. The ListReader does not read this list of tools: it would give each page a turn of the event loop, and a call
// in between would not find its tool.

import { tap } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { type ExchangeEvent, isFinal } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../domain/errors/backend-errors.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { gatherPages } from '../../domain/lists/list-pages.ts';
import type { Handshake, Tool } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import { answerOf, gatewayExchange } from '../../transports/gateway-requests.ts';
import type { Conversation, Transport } from '../../transports/transport.ts';
import { Feed } from '../subscriptions/feed.ts';
import { ToolCache, type ToolRules } from './tool-cache.ts';

/** Longest wait for one page of an instance's tools. */
const TOOL_LIST_MS = 30_000;

/** The transport of an instance, with its tools and its feed. Each opening makes a new one. */
export class InstanceTransport {
  readonly transport: Transport;
  readonly tools: ToolCache;
  /** Resource subscriptions and messages, for the clients that share the conversation. */
  readonly feed: Feed;
  /** The time of the last message of the backend, in ms of the gateway's monotonic clock. */
  lastMessageAtMs: number;
  /** The time of the last answer to a call, in ms of the same clock. */
  lastAnswerAtMs = Number.NEGATIVE_INFINITY;
  /** Must be called for each message of the backend; without the event if it belongs to a request of the gateway itself. */
  readonly noteMessage: (event?: ExchangeEvent) => void;

  /** `onCut` is called when the list of tools ends before its last page. */
  constructor(transport: Transport, timing: Timing, toolRules: ToolRules, onCut: (reason: string) => void) {
    const { clock } = timing;
    this.transport = transport;
    this.lastMessageAtMs = clock.now();
    const { handshake, messages$, resumed$, closed$, countsOwners } = transport;
    this.noteMessage = (event) => {
      this.lastMessageAtMs = clock.now();
      if (event !== undefined && isFinal(event)) this.lastAnswerAtMs = this.lastMessageAtMs;
    };
    // Subscriptions, too, are neither counted nor timed.
    const exchange = (request: ExchangeRequest) =>
      gatewayExchange(transport, request).pipe(tap(() => this.noteMessage()));
    const load = () => listTools({ handshake, exchange }, clock, onCut);
    this.tools = new ToolCache(load, clock, toolRules);
    this.feed = new Feed({ handshake, messages$, resumed$, closed$, countsOwners, exchange }, timing);
  }

  get handshake(): Handshake {
    return this.transport.handshake;
  }
  get hasAnswered(): boolean {
    return this.lastAnswerAtMs > Number.NEGATIVE_INFINITY;
  }
}

/** Lists all tools of a backend. Throws BACKEND_UNAVAILABLE or BACKEND_TIMEOUT. */
export async function listTools(
  transport: Pick<Conversation, 'handshake' | 'exchange'>,
  clock: Clock,
  onCut?: (reason: string) => void,
): Promise<Tool[]> {
  const { era, capabilities } = transport.handshake;
  if (era !== 'bare' && capabilities.tools === undefined) return [];
  const { items, cut } = await gatherPages('tools', async (request) => {
    const answer = await answerOf(transport.exchange(request), TOOL_LIST_MS, clock);
    if (answer.kind === 'error') throw backendUnavailable('it does not list its tools', { delivered: 'yes' });
    return answer;
  });
  if (cut !== undefined) onCut?.(cut);
  return items.filter((item): item is JsonObject & Tool => typeof item.name === 'string');
}
