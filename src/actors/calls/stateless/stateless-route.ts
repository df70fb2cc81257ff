// The route of one call of a modern client, to instances of either era: through the transport of the instance, or
// through a dedicated conversation of the owner, taken once the instance is chosen (stateless-conversations.ts).
// process-sharing.ts has the rules for this choice; everything else is in calls/call.ts.

import { defer, from, type Observable, of, race, tap } from 'rxjs';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import { type ExchangeEvent, type FinalEvent, isAnswered } from '../../../domain/calls/exchange-event.ts';
import { backendTimeout } from '../../../domain/errors/error-catalogue.ts';
import { isUnanswered } from '../../../domain/errors/errors.ts';
import { isNetworked } from '../../../domain/instances/transport-kinds.ts';
import { type Client, extensionsOf } from '../../../domain/mcp/client.ts';
import { METHOD_NOT_FOUND } from '../../../domain/mcp/jsonrpc.ts';
import { listOf } from '../../../domain/mcp/mcp.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import { failAfter$ } from '../../../domain/time/clock-streams.ts';
import { forLegacy, isLogged, logLevelOf } from '../../../transports/legacy-form.ts';
import type { CallConversation } from '../../../transports/transport.ts';
import { NO_SUBSCRIBER } from '../../instances/dedicated-conversation.ts';
import type { ConversationUse } from '../../instances/dedicated-conversations.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import { type ConversationChoice, conversationFor, NO_TASKS } from '../../instances/process-sharing.ts';
import type { TemplateGroup } from '../../template-group.ts';
import { BalancedRoute } from '../balanced-route.ts';
import { BoundRoute } from '../bound-route.ts';
import type { AttemptEnding } from '../call-events.ts';
import {
  type AttemptPlan,
  type CallRoute,
  DirectStep,
  type ExcludedIds,
  FULL,
  type LocalAnswer,
  NONE,
  type Opening,
  type RunningCall,
  type SendStep,
  type Step,
  type StepReason,
} from '../call-route.ts';
import type { EqualToolLists } from './equal-tool-lists.ts';
import type { StatelessConversations } from './stateless-conversations.ts';

interface StatelessRouteInput {
  readonly deps: Pick<Clock, 'now' | 'alarm'> & { readonly statelessConversations: StatelessConversations };
  readonly equalToolLists: EqualToolLists;
  readonly client: Client;
  readonly group: TemplateGroup;
  readonly request: ExchangeRequest;
  /** The only instance that may answer, even when drained or unhealthy; undefined when any may. */
  readonly bound: InstanceRef | undefined;
}

/** The route of one call without a session. */
export class StatelessRoute implements CallRoute {
  readonly #input: StatelessRouteInput;
  readonly #logLevel: string | undefined;
  readonly #viaTransport: BalancedRoute | BoundRoute;
  /** The route to the instance where a conversation was opened for this call, or is to be reopened; undefined otherwise. */
  #dedicatedAt: BoundRoute | undefined;
  #held: HeldUse | undefined;

  constructor(input: StatelessRouteInput) {
    const { group, request, bound } = input;
    this.#input = input;
    this.#logLevel = logLevelOf(request);
    this.#viaTransport = bound === undefined ? new BalancedRoute(group, request) : this.#routeTo(bound);
  }

  get onlyInstance(): InstanceRef | undefined {
    return this.#dedicatedAt?.onlyInstance ?? this.#input.bound;
  }

  step(call: RunningCall, reason?: StepReason): Step {
    const { excluded } = call;
    if (reason?.kind === 'hedge') return this.#hedge(call);
    if (reason?.kind === 'reopen') this.#reopen(reason);
    const ref = this.#next(excluded);
    if (ref !== undefined) return this.#sendStep(ref, call);
    return (this.#dedicatedAt ?? this.#viaTransport).isOnlyFull(excluded) ? FULL : NONE;
  }

  #reopen({ plan }: StepReason): void {
    if (!(plan instanceof DedicatedPlan)) return;
    const { ref, use } = plan.held;
    use.conversation.refuseUses(); // its attempt has not ended yet
    this.#dedicatedAt = this.#routeTo(ref);
  }

  end(): void {
    const held = this.#held;
    this.#forget();
    held?.use.end();
  }

  #next(excluded: ExcludedIds): InstanceRef | undefined {
    const { bound } = this.#input;
    if (this.#dedicatedAt?.isOpen(excluded) === true) return this.#dedicatedAt.next(excluded);
    if (this.#dedicatedAt !== undefined) {
      this.end();
      if (bound !== undefined) return undefined; // its dedicated conversation cannot be used
    }
    // An independent conversation does not depend on the state of the instance.
    if (bound !== undefined && isDedicated(this.#conversationFor(bound)))
      return excluded?.has(bound.id) ? undefined : bound;
    return this.#viaTransport.next(excluded);
  }

  /**
   * Returns a step for a second attempt if an instance can take the call at once; otherwise NONE. Over a pipe another
   * instance would have to start a program first.
   */
  #hedge(call: RunningCall): Step {
    const ref = this.#input.bound === undefined ? this.#viaTransport.next(call.excluded) : undefined;
    if (ref === undefined) return NONE;
    const choice = this.#conversationFor(ref);
    const isReady = isDedicated(choice)
      ? isNetworked(ref.definition) && this.#isOpen(ref)
      : choice !== 'refused' && choice !== 'unknown';
    return isReady ? this.#sendStep(ref, call, choice) : NONE;
  }

  #sendStep(ref: InstanceRef, call: RunningCall, choice = this.#conversationFor(ref)): SendStep {
    if (choice === 'direct') return new DirectStep(ref, this.#input.request);
    return { kind: 'send', ref, plan: () => this.#planFor(ref, choice, call) };
  }

  #planFor(
    ref: InstanceRef,
    choice: Exclude<ConversationChoice, 'direct'>,
    call: RunningCall,
  ): AttemptPlan | LocalAnswer | Opening {
    if (choice === 'unknown') return { kind: 'answer', answer$: of(UNKNOWN_METHOD) };
    if (choice === 'refused') return { kind: 'answer', answer$: of(NO_TASKS) };
    if (choice === 'shared')
      return { kind: 'send', request: forLegacy(this.#input.request), receive: isLogged(this.#logLevel) };
    return this.#dedicated(ref, call, choice === 'extended');
  }

  #forget(): void {
    this.#dedicatedAt = undefined;
    this.#held = undefined;
  }

  #conversationFor(ref: InstanceRef): ConversationChoice {
    const { equalToolLists, client, group, request } = this.#input;
    const { profile } = client;
    return conversationFor(ref, {
      sharing: group.policy.processSharing,
      profile,
      request,
      logLevel: this.#logLevel,
      hasEqualTools: listOf(request.method) === 'tools' && equalToolLists.has(ref, profile),
    });
  }

  #dedicated(ref: InstanceRef, call: RunningCall, isExtended: boolean): AttemptPlan | Opening {
    const held = this.#held?.ref === ref ? this.#held : this.#take(ref, isExtended);
    const { conversation } = held;
    // Whether the bound instance takes the call depends on the conversation.
    if (conversation === undefined || (this.#input.bound !== undefined && this.#dedicatedAt === undefined))
      return { kind: 'opening', opened$: this.#open(held, call) };
    this.#forget(); // from now on the attempt owns the use
    return new DedicatedPlan(this, held, forLegacy(this.#input.request), conversation);
  }

  #take(ref: InstanceRef, isExtended = false): HeldUse {
    const { deps, client } = this.#input;
    this.end(); // of an attempt that was not made
    const extensions = isExtended ? extensionsOf(client.profile) : undefined;
    const use =
      extensions === undefined
        ? deps.statelessConversations.use(ref, client)
        : deps.statelessConversations.useShared(ref, client.owner, extensions);
    const { conversation } = use;
    const isReady = this.#logLevel === undefined || !conversation.requireLogLevel(this.#logLevel);
    this.#held = { ref, use, conversation: isReady ? conversation.forCalls : undefined };
    return this.#held;
  }

  /** Takes the conversation, and keeps the use only if the conversation is open already. Returns whether it is. */
  #isOpen(ref: InstanceRef): boolean {
    try {
      if (this.#take(ref).conversation !== undefined) return true;
    } catch {
      return false; // there is no room for one, and the first attempt continues
    }
    this.end();
    return false;
  }

  /**
   * Opens the dedicated conversation. The opening continues when this call stops waiting, since other calls may use the
   * conversation.
   */
  #open(held: HeldUse, { excluded, deadline }: RunningCall): Observable<unknown> {
    const ready$ = held.conversation === undefined ? from(ready(held.use, this.#logLevel)) : of(undefined);
    // A program takes time to start on any instance; over a network a healthy backend opens at once.
    const isSpare = isNetworked(held.ref.definition) && this.#hasOther(held.ref, excluded);
    const opened = () => {
      held.conversation = held.use.conversation.forCalls;
      this.#dedicatedAt = this.#routeTo(held.ref, held.conversation);
    };
    return (isSpare ? race(ready$, this.#halfTime(deadline.timeoutAtMs)) : ready$).pipe(
      tap({ next: opened, error: () => this.end() }),
    );
  }

  #routeTo(ref: InstanceRef, conversation?: CallConversation): BoundRoute {
    return new BoundRoute(ref, this.#input.request, {
      isContinuation: this.#input.bound !== undefined,
      conversation,
    });
  }

  #halfTime(timeoutAtMs: number): Observable<never> {
    const { deps } = this.#input;
    return defer(() => {
      const waitMs = Math.max(0, Math.ceil((timeoutAtMs - deps.now()) / 2));
      return failAfter$(deps, waitMs, () => backendTimeout(waitMs, 'no'));
    });
  }

  #hasOther(ref: InstanceRef, excluded: ExcludedIds): boolean {
    const { bound, group } = this.#input;
    if (bound !== undefined || (excluded?.size ?? 0) >= group.policy.maxRetries) return false;
    return group.pool.candidates.some(({ id }) => id !== ref.id && excluded?.has(id) !== true);
  }

  /**
   * Filters the events of the backend: returns false for those that the client does not get. A question during a list
   * request does not concern the list, and is refused here.
   */
  receive(ref: InstanceRef, event: ExchangeEvent): boolean {
    const { equalToolLists, client, request } = this.#input;
    if (!isLogged(this.#logLevel)(event)) return false;
    const list = listOf(request.method);
    if (list === undefined) return true;
    if (event.kind === 'request') {
      event.answer(NO_SUBSCRIBER);
      return false;
    }
    if (list === 'tools' && extensionsOf(client.profile) === undefined)
      equalToolLists.learn(ref, client.profile, event);
    return true;
  }
}

/** A dedicated conversation for an attempt that is not sent yet. */
interface HeldUse {
  readonly ref: InstanceRef;
  readonly use: ConversationUse;
  /** The open conversation; undefined until the call may be sent in it. */
  conversation: CallConversation | undefined;
}

/** The plan of an attempt in a dedicated conversation. The use ends with the attempt. */
class DedicatedPlan implements AttemptPlan {
  readonly kind: AttemptPlan['kind'];
  readonly request: ExchangeRequest;
  readonly conversation: CallConversation;
  readonly held: HeldUse;
  readonly #route: StatelessRoute;

  constructor(
    route: StatelessRoute,
    held: HeldUse,
    request: ExchangeRequest,
    conversation: CallConversation,
  ) {
    this.#route = route;
    this.kind = held.use.isNew ? 'send' : 'sendKept';
    this.held = held;
    this.request = request;
    this.conversation = conversation;
  }

  receive(event: ExchangeEvent): boolean {
    return this.#route.receive(this.held.ref, event);
  }

  ended({ outcome, error }: AttemptEnding): void {
    const { use } = this.held;
    if (error?.delivered === 'no' && isUnanswered(error)) use.conversation.refuseUses(); // it has ended
    use.end(isAnswered(outcome) || error?.delivered === 'no');
  }
}

/** The answer to a method that the backend's era does not have. */
const UNKNOWN_METHOD: FinalEvent = { kind: 'error', error: METHOD_NOT_FOUND };

/** Returns true for dedicated conversations: they may continue without the transport of the instance. */
function isDedicated(choice: ConversationChoice): boolean {
  return choice === 'dedicated' || choice === 'extended';
}

async function ready({ conversation }: ConversationUse, logLevel: string | undefined): Promise<void> {
  await conversation.untilOpen;
  if (logLevel !== undefined) await conversation.requireLogLevel(logLevel);
}
