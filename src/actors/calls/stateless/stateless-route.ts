// The route of one call of a modern client, to instances of either era: through the transport of the instance, or
// through a dedicated conversation of the owner, taken once the instance is chosen (stateless-conversations.ts).
// process-sharing.ts has the rules for this choice; everything else is in calls/call.ts.

import { from, type Observable, of, tap } from 'rxjs';
import type { ExchangeRequest } from '../../../domain/calls/exchange.ts';
import { type ExchangeEvent, type FinalEvent, isAnswered } from '../../../domain/calls/exchange-event.ts';
import { backendTimeout } from '../../../domain/errors/backend-errors.ts';
import { isUnanswered } from '../../../domain/errors/errors.ts';
import { isNetworked } from '../../../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../../../domain/json/json.ts';
import {
  acceptsServerRequests,
  type Client,
  extensionsOf,
  QUESTION_REFUSALS,
} from '../../../domain/mcp/client.ts';
import { METHOD_NOT_FOUND } from '../../../domain/mcp/jsonrpc.ts';
import { listOf } from '../../../domain/mcp/mcp.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import { startsWithin } from '../../../domain/time/clock-streams.ts';
import { forLegacy, isLogged, logLevelOf } from '../../../transports/legacy-form.ts';
import type { CallConversation } from '../../../transports/transport.ts';
import type { ConversationUse } from '../../instances/dedicated-conversations.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import { type ConversationChoice, conversationFor, NO_TASKS } from '../../instances/process-sharing.ts';
import type { TemplateGroup } from '../../template-group.ts';
import type { AttemptEnding } from '../call-events.ts';
import {
  type AttemptPlan,
  type CallRoute,
  type LocalAnswer,
  NO_STEP,
  type Opening,
  type RunningCall,
  type SendStep,
  type Step,
  type StepReason,
  stepWithout,
} from '../call-route.ts';
import { chosenFrom, DirectStep, type InstanceChoice, ifAccepting } from '../direct-route.ts';
import type { ExcludedIds } from '../tries.ts';
import type { EqualToolLists } from './equal-tool-lists.ts';
import type { StatelessConversations } from './stateless-conversations.ts';

interface StatelessRouteOptions {
  readonly deps: { readonly clock: Clock; readonly statelessConversations: StatelessConversations };
  readonly equalToolLists: EqualToolLists;
  readonly client: Client;
  readonly group: TemplateGroup;
  readonly request: ExchangeRequest;
  /** The only instance that may answer, even when drained or unhealthy; undefined when any may. */
  readonly bound: InstanceRef | undefined;
}

/** The route of one call without a session. */
export class StatelessRoute implements CallRoute {
  readonly #input: StatelessRouteOptions;
  readonly #logLevel: string | undefined;
  /**
   * The instance where a conversation was opened for this call, or is to be reopened (then it is undefined); undefined
   * otherwise.
   */
  #dedicatedAt:
    | { readonly ref: InstanceRef; readonly conversation: CallConversation | undefined }
    | undefined;
  /** The plan whose attempt is not made yet; it has taken a use. */
  #taken: DedicatedPlan | undefined;

  constructor(input: StatelessRouteOptions) {
    this.#input = input;
    this.#logLevel = logLevelOf(input.request);
  }

  get onlyInstance(): InstanceRef | undefined {
    return this.#dedicatedAt?.ref ?? this.#input.bound;
  }

  step(call: RunningCall, reason?: StepReason, failed?: AttemptPlan): Step {
    if (reason === 'hedge') return this.#hedge(call);
    if (reason === 'reopen') this.#reopen(failed);
    const choice = this.#choose(call.tries.excluded);
    return typeof choice === 'string' ? stepWithout(choice) : this.#sendStep(choice, call);
  }

  #reopen(failed: AttemptPlan | undefined): void {
    if (!(failed instanceof DedicatedPlan)) return;
    failed.use.conversation.refuseUses(); // its attempt has not ended yet
    this.#dedicatedAt = { ref: failed.ref, conversation: undefined };
  }

  end(): void {
    const taken = this.#taken;
    this.#forget();
    taken?.use.end();
  }

  #choose(excluded: ExcludedIds): InstanceChoice {
    const { bound, group, request } = this.#input;
    if (this.#dedicatedAt !== undefined) {
      const { ref, conversation } = this.#dedicatedAt;
      const choice = ifAccepting(ref, request, excluded, bound !== undefined, conversation);
      if (choice !== 'none') return choice;
      this.end();
      if (bound !== undefined) return 'none'; // its dedicated conversation cannot be used
    }
    if (bound === undefined) return chosenFrom(group.pool, request, excluded);
    // An independent conversation does not depend on the state of the instance.
    if (isDedicated(this.#conversationFor(bound))) return excluded?.has(bound.id) ? 'none' : bound;
    return ifAccepting(bound, request, excluded, true);
  }

  /**
   * A step for a second attempt if an instance can take the call at once; otherwise NO_STEP. Over a pipe another
   * instance would have to start a program first.
   */
  #hedge(call: RunningCall): Step {
    const { bound, group, request } = this.#input;
    const ref = bound === undefined ? chosenFrom(group.pool, request, call.tries.excluded) : 'none';
    if (typeof ref === 'string') return NO_STEP;
    const choice = this.#conversationFor(ref);
    const isReady = isDedicated(choice)
      ? isNetworked(ref.definition) && this.#takeIfOpen(ref)
      : choice !== 'noTasks' && choice !== 'unknownMethod';
    return isReady ? this.#sendStep(ref, call, choice) : NO_STEP;
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
    if (choice === 'unknownMethod') return { answer$: of(UNKNOWN_METHOD) };
    if (choice === 'noTasks') return { answer$: of(NO_TASKS) };
    if (choice === 'transport')
      return { request: forLegacy(this.#input.request), receive: isLogged(this.#logLevel) };
    const extensions = choice === 'equalExtensions' ? extensionsOf(this.#input.client.profile) : undefined;
    return this.#dedicated(ref, call, extensions);
  }

  #forget(): void {
    this.#dedicatedAt = undefined;
    this.#taken = undefined;
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

  /** `extensions`: those whose clients share the conversation; undefined for one of the owner alone. */
  #dedicated(ref: InstanceRef, call: RunningCall, extensions?: JsonObject): AttemptPlan | Opening {
    const plan = this.#taken?.ref === ref ? this.#taken : this.#take(ref, extensions);
    // Whether the bound instance takes the call depends on the conversation.
    const isChosen = this.#input.bound === undefined || this.#dedicatedAt !== undefined;
    if (plan.conversation === undefined || !isChosen) return { opened$: this.#open(plan, call) };
    this.#forget(); // from now on the attempt owns the use
    return plan;
  }

  #take(ref: InstanceRef, extensions?: JsonObject): DedicatedPlan {
    this.#taken?.use.end(); // of an attempt that was not made
    this.#taken = undefined;
    const use = this.#use(ref, extensions);
    const { conversation } = use;
    this.#taken = new DedicatedPlan(this, ref, use, forLegacy(this.#input.request));
    const awaitsLevel =
      this.#logLevel !== undefined && conversation.requireLogLevel(this.#logLevel) !== undefined;
    if (conversation.isOpen && !awaitsLevel) this.#taken.conversation = conversation;
    return this.#taken;
  }

  #use(ref: InstanceRef, extensions: JsonObject | undefined): ConversationUse {
    const { deps, client } = this.#input;
    try {
      return extensions === undefined
        ? deps.statelessConversations.use(ref, client)
        : deps.statelessConversations.useForExtensions(ref, client.owner.id, extensions);
    } catch (thrown) {
      this.#dedicatedAt = undefined; // another instance may have room
      throw thrown;
    }
  }

  /** Takes a use of the conversation only if that is open already. True when it is. */
  #takeIfOpen(ref: InstanceRef): boolean {
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
  #open(plan: DedicatedPlan, { tries, deadline }: RunningCall): Observable<unknown> {
    const { ref, use } = plan;
    const { bound, deps, group } = this.#input;
    const ready$ = plan.conversation === undefined ? from(ready(use, this.#logLevel)) : of(undefined);
    const leftMs = deadline.timeoutAtMs - deps.clock.now();
    const slowMs = bound === undefined ? tries.slowAfterMs(ref, group, leftMs) : undefined;
    const opened = () => {
      plan.conversation = use.conversation;
      this.#dedicatedAt = { ref, conversation: use.conversation };
    };
    const inTime$ =
      slowMs === undefined
        ? ready$
        : ready$.pipe(startsWithin(deps.clock, slowMs, () => backendTimeout(slowMs, 'no')));
    return inTime$.pipe(tap({ next: opened, error: () => this.end() }));
  }

  /** True when the backend may ask its client after the end of a call: the question would reach the next call there. */
  mayBeAskedLate({ conversation }: ConversationUse): boolean {
    return conversation.sharing === 'oneUse' && acceptsServerRequests(this.#input.client.profile);
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
      event.answer(QUESTION_REFUSALS.noCall);
      return false;
    }
    if (list === 'tools' && extensionsOf(client.profile) === undefined)
      equalToolLists.learn(ref, client.profile, event);
    return true;
  }
}

/** The plan of an attempt in a dedicated conversation. The use ends with the attempt. */
class DedicatedPlan implements AttemptPlan {
  readonly ref: InstanceRef;
  readonly use: ConversationUse;
  readonly request: ExchangeRequest;
  /** Undefined until the conversation is open, and the attempt may be made. */
  conversation: CallConversation | undefined;
  readonly #route: StatelessRoute;

  constructor(route: StatelessRoute, ref: InstanceRef, use: ConversationUse, request: ExchangeRequest) {
    this.#route = route;
    this.ref = ref;
    this.use = use;
    this.request = request;
  }

  receive(event: ExchangeEvent): boolean {
    return this.#route.receive(this.ref, event);
  }

  ended({ outcome, error }: AttemptEnding): void {
    const { use } = this;
    const mayGoOn = !isAnswered(outcome) && error?.delivered !== 'no';
    const hasEnded = error?.delivered === 'no' && isUnanswered(error);
    if (hasEnded || (mayGoOn && this.#route.mayBeAskedLate(use))) use.conversation.refuseUses();
    use.end();
  }
}

/** The answer to a method that the backend's era does not have. */
const UNKNOWN_METHOD: FinalEvent = { kind: 'error', error: METHOD_NOT_FOUND };

/** True for dedicated conversations: they may continue without the transport of the instance. */
function isDedicated(choice: ConversationChoice): boolean {
  return choice === 'dedicated' || choice === 'equalExtensions';
}

async function ready({ conversation }: ConversationUse, logLevel: string | undefined): Promise<void> {
  await conversation.requiredOpening;
  if (logLevel !== undefined) await conversation.requireLogLevel(logLevel);
}
