// The open transport of an instance, with what the instance knows from it: its tools, its messages, the times of its last ones.

import { tap } from 'rxjs';
import type { ExchangeRequest } from '../../domain/calls/exchange.ts';
import { type ExchangeEvent, isFinal } from '../../domain/calls/exchange-event.ts';
import { backendUnavailable } from '../../domain/errors/error-catalogue.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { gatherPages } from '../../domain/mcp/list-pages.ts';
import type { Handshake, Tool } from '../../domain/mcp/mcp.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { answerOf, ownExchange } from '../../transports/own-exchange.ts';
import type { Conversation, Transport } from '../../transports/transport.ts';
import { Feed } from '../subscriptions/feed.ts';
import type { SubscriptionDeps } from '../subscriptions/resource-subscriptions.ts';
import { type HintsByTool, type ListBudget, ToolCache } from './tool-cache.ts';
import type { ToolTrust } from './tool-trust.ts';

/** The open transport of an instance; a new one for each opening. */
export class OpenedTransport {
  readonly transport: Transport;
  readonly tools: ToolCache;
  /** Resource subscriptions and messages, for clients that share the conversation. */
  readonly feed: Feed;
  /** Time of the last message of the backend, in ms of the gateway's monotonic clock. */
  lastMessageAtMs: number;
  /** Time of the last answer to a call, by the same clock. */
  lastAnswerAtMs = Number.NEGATIVE_INFINITY;
  /** To be called for each message of an exchange; with the event, if it is that of a call. */
  readonly noteMessage: (event?: ExchangeEvent) => void;

  /** `onCut`: called when the list of tools ends before its last page. */
  constructor(
    transport: Transport,
    clock: Pick<Clock, 'now' | 'alarm'> & SubscriptionDeps,
    counted?: ListBudget,
    onCut?: (reason: string) => void,
    trust?: () => ToolTrust | undefined,
    hints?: HintsByTool,
  ) {
    this.transport = transport;
    this.lastMessageAtMs = clock.now();
    const { handshake, messages$, resumed$, closed$ } = transport;
    this.noteMessage = (event) => {
      this.lastMessageAtMs = clock.now();
      if (event !== undefined && isFinal(event)) this.lastAnswerAtMs = this.lastMessageAtMs;
    };
    // Subscriptions, too, are neither counted nor timed.
    const exchange = (request: ExchangeRequest) =>
      ownExchange(transport, request).pipe(tap(() => this.noteMessage()));
    const load = () => listTools({ handshake, exchange }, clock, onCut);
    this.tools = new ToolCache(load, clock, counted, trust, hints);
    this.feed = new Feed({ handshake, messages$, resumed$, closed$, exchange }, clock);
  }

  get handshake(): Handshake {
    return this.transport.handshake;
  }
  get hasAnswered(): boolean {
    return this.lastAnswerAtMs > Number.NEGATIVE_INFINITY;
  }
}

/** Every tool that the backend of a transport lists. BACKEND_UNAVAILABLE, BACKEND_TIMEOUT. */
export async function listTools(
  transport: Pick<Conversation, 'handshake' | 'exchange'>,
  clock: Pick<Clock, 'alarm'>,
  onCut?: (reason: string) => void,
): Promise<Tool[]> {
  const { era, capabilities } = transport.handshake;
  if (era !== 'bare' && capabilities.tools === undefined) return [];
  const { items, cut } = await gatherPages('tools', async (request) => {
    const answer = await answerOf(transport.exchange(request), LIMITS.toolListMs, clock);
    if (answer.kind === 'error') throw backendUnavailable('it does not list its tools', { delivered: 'yes' });
    return answer;
  });
  if (cut !== undefined) onCut?.(cut);
  return items.filter((item): item is JsonObject & Tool => typeof item.name === 'string');
}
