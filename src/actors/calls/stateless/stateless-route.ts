// The route of one call of a modern client, to instances of either era: through the transport of the instance, or
// through a dedicated conversation of the owner, taken once the instance is chosen (stateless-conversations.ts).
// process-sharing.ts has the rules for this choice; everything else is in calls/call.ts.

import { from, type Observable, of, tap } from 'rxjs';
import { type ExchangeRequest, ownerIdOf, type SourcedEvent } from '../../../domain/calls/exchange.ts';
import { type ExchangeEvent, type FinalEvent, isAnswered } from '../../../domain/calls/exchange-event.ts';
import type { TryKind } from '../../../domain/calls/retry-rules.ts';
import { backendTimeout } from '../../../domain/errors/backend-errors.ts';
import { isUnanswered } from '../../../domain/errors/errors.ts';
import { isNetworked } from '../../../domain/instances/transport-kinds.ts';
import type { JsonObject } from '../../../domain/json/json.ts';
import {
  acceptsServerRequests,
  type Client,
  extensionsOf,
  QUESTION_REFUSALS,
  type StatelessOptions,
} from '../../../domain/mcp/client.ts';
import { METHOD_NOT_FOUND } from '../../../domain/mcp/jsonrpc.ts';
import { listReturnedBy } from '../../../domain/mcp/mcp.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import { startsWithin } from '../../../domain/time/clock-streams.ts';
import { forLegacy, isLogged, logLevelOf } from '../../../transports/legacy-form.ts';
import type { CallConversation } from '../../../transports/transport.ts';
import type { Fleet } from '../../fleet/fleet.ts';
import type { TemplateGroup } from '../../fleet/template-group.ts';
import type { ConversationUse } from '../../instances/dedicated-conversations.ts';
import type { InstanceRef } from '../../instances/instance-ref.ts';
import { type ConversationChoice, conversationFor, NO_TASKS } from '../../instances/process-sharing.ts';
import type { AttemptEnding } from '../call-events.ts';
import type { AttemptPlan, CallRoute, RunningCall, SendStep, Step } from '../call-route.ts';
import { chosenFrom, DirectStep, type InstanceChoice, ifAccepting } from '../direct-route.ts';
import type { Dispatcher } from '../dispatcher.ts';
import type { StatelessConversations } from './stateless-conversations.ts';

/** What the calls of all clients without a session share. */
export interface StatelessDeps {
  readonly clock: Clock;
  readonly conversations: StatelessConversations;
  readonly fleet: Fleet;
  readonly dispatcher: Dispatcher;
}

/**
 * See Backends.exchange of protocol/endpoint-backends.ts. Failover follows call.ts, but tools are looked up only
 * where definitions need approval. Errors with QUEUE_FULL also when an instance can have no more conversations.
 * With `instanceId` only that instance may answer, even when drained or unhealthy, since the request continues
 * something there.
 */
export function statelessExchange(
  deps: StatelessDeps,
  template: string,
  request: ExchangeRequest,
  client: StatelessOptions,
): Observable<SourcedEvent> {
  return deps.dispatcher.carry(template, request, () => {
    const { instanceId } = client;
    const group = deps.fleet.templates.existingGroup(template);
    const only = instanceId === undefined ? undefined : group.ref(instanceId);
    const route = new StatelessRoute(deps, group, request, client, only);
    return { group, route, refusesUnknownTools: false };
  });
}

/** The route of one call without a session. */
class StatelessRoute implements CallRoute {
  readonly #deps: StatelessDeps;
  readonly #group: TemplateGroup;
  readonly #request: ExchangeRequest;
  readonly #client: Client;
  readonly #only: InstanceRef | undefined;
  readonly #logLevel: string | undefined;
  /** See StatelessConversations.hasEnded. */
  readonly #since: number;
  /**
   * The instance where a conversation was opened for this call, or is to be reopened: then the conversation is undefined.
   * Undefined without such an instance.
   */
  #dedicatedAt:
    | { readonly ref: InstanceRef; readonly conversation: CallConversation | undefined }
    | undefined;
  /** The plan whose attempt is not made yet; it has taken a use. */
  #taken: DedicatedPlan | undefined;

  /** `only`: the only instance that may answer, even when drained or unhealthy; undefined when any may. */
  constructor(
    deps: StatelessDeps,
    group: TemplateGroup,
    request: ExchangeRequest,
    client: Client,
    only: InstanceRef | undefined,
  ) {
    this.#deps = deps;
    this.#group = group;
    this.#request = request;
    this.#client = client;
    this.#only = only;
    this.#logLevel = logLevelOf(request);
    this.#since = deps.conversations.ends;
  }

  get onlyInstance(): InstanceRef | undefined {
    return this.#dedicatedAt?.ref ?? this.#only;
  }

  step(call: RunningCall, kind?: TryKind, failed?: AttemptPlan): Step {
    const { conversations } = this.#deps;
    if (kind !== undefined && conversations.hasEnded(this.#client.owner.id, this.#since)) return 'none';
    if (kind === 'hedge') return this.#hedge(call);
    if (kind === 'reopen') this.#reopen(failed);
    const choice = this.#choose(call);
    return typeof choice === 'string' ? choice : this.#sendStep(choice, call);
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

  #choose({ tries: { excluded } }: RunningCall): InstanceChoice {
    const only = this.#only;
    const request = this.#request;
    const ownerId = ownerIdOf(request);
    if (this.#dedicatedAt !== undefined) {
      const { ref, conversation } = this.#dedicatedAt;
      const isExcluded = excluded?.has(ref.id) === true;
      const choice = isExcluded ? 'none' : ifAccepting(ref, ownerId, only !== undefined, conversation);
      if (choice !== 'none') return choice;
      this.end();
      if (only !== undefined) return 'none'; // its dedicated conversation cannot be used
    }
    if (only === undefined) return chosenFrom(this.#group.pool, request, excluded);
    if (excluded?.has(only.id)) return 'none';
    // An independent conversation does not depend on the state of the instance.
    return isDedicated(this.#conversationFor(only)) ? only : ifAccepting(only, ownerId, true);
  }

  /**
   * A step for a hedge if an instance can take the call at once; otherwise none. Over a pipe another
   * instance would have to start a program first.
   */
  #hedge(call: RunningCall): Step {
    if (this.#only !== undefined) return 'none';
    const ref = chosenFrom(this.#group.pool, this.#request, call.tries.excluded);
    if (typeof ref === 'string') return 'none';
    const choice = this.#conversationFor(ref);
    const isReady = isDedicated(choice)
      ? isNetworked(ref.definition) && this.#takeIfOpen(ref)
      : choice !== 'noTasks' && choice !== 'unknownMethod';
    return isReady ? this.#sendStep(ref, call, choice) : 'none';
  }

  #sendStep(ref: InstanceRef, call: RunningCall, choice = this.#conversationFor(ref)): SendStep {
    if (choice === 'direct') return new DirectStep(ref, this.#request);
    return { kind: 'send', ref, plan: () => this.#planFor(ref, choice, call) };
  }

  #planFor(
    ref: InstanceRef,
    choice: Exclude<ConversationChoice, 'direct'>,
    call: RunningCall,
  ): AttemptPlan | Observable<FinalEvent | undefined> {
    if (choice === 'unknownMethod') return of(UNKNOWN_METHOD);
    if (choice === 'noTasks') return of(NO_TASKS);
    if (choice === 'transport')
      return { request: forLegacy(this.#request), receive: isLogged(this.#logLevel) };
    const extensions = choice === 'equalExtensions' ? extensionsOf(this.#client.profile) : undefined;
    return this.#dedicated(ref, call, extensions);
  }

  #forget(): void {
    this.#dedicatedAt = undefined;
    this.#taken = undefined;
  }

  #conversationFor(ref: InstanceRef): ConversationChoice {
    const { profile } = this.#client;
    const request = this.#request;
    return conversationFor(ref, {
      sharing: this.#group.policy.processSharing,
      profile,
      request,
      logLevel: this.#logLevel,
      hasEqualTools:
        listReturnedBy(request.method) === 'tools' && this.#deps.conversations.hasEqualTools(ref, profile),
    });
  }

  /** `extensions`: those whose clients share the conversation; undefined for one of the owner alone. */
  #dedicated(
    ref: InstanceRef,
    call: RunningCall,
    extensions?: JsonObject,
  ): AttemptPlan | Observable<undefined> {
    const plan = this.#taken?.ref === ref ? this.#taken : this.#take(ref, extensions);
    // Whether the only instance takes the call depends on the conversation.
    const isChosen = this.#only === undefined || this.#dedicatedAt !== undefined;
    if (plan.conversation === undefined || !isChosen) return this.#open(plan, call);
    this.#forget(); // from now on the attempt owns the use
    return plan;
  }

  #take(ref: InstanceRef, extensions?: JsonObject): DedicatedPlan {
    this.#taken?.use.end(); // of an attempt that was not made
    this.#taken = undefined;
    const use = this.#use(ref, extensions);
    const { conversation } = use;
    this.#taken = new DedicatedPlan(this, ref, use, forLegacy(this.#request));
    const awaitsLevel =
      this.#logLevel !== undefined && conversation.requireLogLevel(this.#logLevel) !== undefined;
    if (conversation.isOpen && !awaitsLevel) this.#taken.conversation = conversation;
    return this.#taken;
  }

  #use(ref: InstanceRef, extensions: JsonObject | undefined): ConversationUse {
    const { conversations } = this.#deps;
    const client = this.#client;
    try {
      return extensions === undefined
        ? conversations.use(ref, client)
        : conversations.useForExtensions(ref, client.owner.id, extensions);
    } catch (thrown) {
      this.#dedicatedAt = undefined; // another instance may have room
      throw thrown;
    }
  }

  /** Takes a use of the conversation, and gives it back while that is not open yet. True when it is open. */
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
  #open(plan: DedicatedPlan, { tries, deadline }: RunningCall): Observable<undefined> {
    const { ref, use } = plan;
    const { clock } = this.#deps;
    const ready$ = plan.conversation === undefined ? from(ready(use, this.#logLevel)) : of(undefined);
    const leftMs = deadline.timeoutAtMs - clock.now();
    const slowMs = this.#only === undefined ? tries.slowAfterMs(ref, this.#group, leftMs) : undefined;
    const opened = () => {
      plan.conversation = use.conversation;
      this.#dedicatedAt = { ref, conversation: use.conversation };
    };
    const inTime$ =
      slowMs === undefined
        ? ready$
        : ready$.pipe(startsWithin(clock, slowMs, () => backendTimeout(slowMs, 'no')));
    return inTime$.pipe(tap({ next: opened, error: () => this.end() }));
  }

  /** True when the backend may ask its client after the end of a call: the question would reach the next call there. */
  mayBeAskedLate({ conversation }: ConversationUse): boolean {
    return conversation.sharing === 'oneUse' && acceptsServerRequests(this.#client.profile);
  }

  /**
   * Filters the events of the backend: returns false for those that the client does not get. A question during a list
   * request does not concern the list, and is refused here.
   */
  receive(ref: InstanceRef, event: ExchangeEvent): boolean {
    if (!isLogged(this.#logLevel)(event)) return false;
    const list = listReturnedBy(this.#request.method);
    if (list === undefined) return true;
    if (event.kind === 'request') {
      event.answer(QUESTION_REFUSALS.noCall);
      return false;
    }
    const { profile } = this.#client;
    if (list === 'tools' && extensionsOf(profile) === undefined)
      this.#deps.conversations.learnTools(ref, profile, event);
    return true;
  }
}

/** The plan of an attempt in a dedicated conversation. The use ends with the attempt. */
class DedicatedPlan implements AttemptPlan {
  readonly ref: InstanceRef;
  readonly use: ConversationUse;
  readonly request: ExchangeRequest;
  /** The conversation of the attempt. Undefined until it is open. */
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

async function ready({ conversation }: ConversationUse, logLevel: string | undefined): Promise<undefined> {
  await conversation.requiredOpening;
  if (logLevel !== undefined) await conversation.requireLogLevel(logLevel);
}
