// What the opening of a transport takes and remembers: the options for the module of each kind, and the part that
// the owner of the transport knows.

import type { LookupFunction } from 'node:net';
import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import type { ProgramUser } from '../domain/instances/command.ts';
import type { RunInContainer } from '../domain/instances/found-instances.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { Handshake, PinnedEra } from '../domain/mcp/mcp.ts';
import type { ByteBudget, InstanceHeldBytes } from '../domain/memory/held-bytes.ts';
import type { Clock } from '../domain/time/clock.ts';
import type { TaskScheduler } from '../domain/time/task-scheduler.ts';
import type { BackendAccount, BearerTokens } from './backend-account.ts';
import type { BackendHandshakes } from './backend-handshakes.ts';
import type { AddressCheck } from './network-guard.ts';
import type { GroupWatch } from './stdio/reaper.ts';
import type { Transport, TransportDiagnostics } from './transport.ts';

/** Options of an opening besides the definition. */
export interface OpenOptions {
  /** Cancels the opening; what was started is stopped. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly handshakeTimeoutMs: number;
  /** Name and version of the gateway, sent to backends. */
  readonly client: { readonly name: string; readonly version: string };
  /** True for addresses that no connection may reach; the resolved address is checked. */
  readonly isDenied: AddressCheck;
  /** Looks up the names of endpoints. Default: as Node does. */
  readonly lookup?: LookupFunction | undefined;
  /** The handshakes of TLS with all backends. Default: only with this one. */
  readonly handshakes?: BackendHandshakes | undefined;
  /** Functions that serve `in-process` instances, by the instance's `serverId`. */
  readonly handlers: ReadonlyMap<string, InProcessHandler>;
  /** Returns how many more programs the instance may run for single clients. Default: no limit. */
  readonly room?: (() => number) | undefined;
  /** Counts incomplete answers of the instance. Default: not counted. */
  readonly answers?: InstanceHeldBytes | undefined;
  /** Counts the messages that wait to be sent, by caller. Default: not counted. Source: ADR 90. */
  readonly waitingBytes?: ByteBudget | undefined;
  /** Runs tasks that come due together. */
  readonly scheduler: TaskScheduler;
  /** Called when a program was started; `diagnostics` returns its state during the opening. Default: none. */
  readonly onStarted?: ((diagnostics: () => TransportDiagnostics) => void) | undefined;
  /** Called for a tool that is left out of lists, once, and again when the reason has changed. Default: none. */
  readonly onWithheld?: ((withheld: WithheldTool) => void) | undefined;
  /**
   * Lists the tools again, for a call that was refused because a header is missing; undefined when too many calls wait for that.
   * Never rejects. Default: they are not listed again.
   */
  readonly relistTools?: (() => Promise<void> | undefined) | undefined;
  /** Stops the programs after the death of the gateway. Default: none. */
  readonly reaper?: GroupWatch | undefined;
  /** Variables of the gateway that programs get. Default: those of PASS_ENV. */
  readonly passEnv?: readonly string[] | undefined;
  /** The user of programs outside of containers. Default: that of the gateway. */
  readonly user?: ProgramUser | undefined;
  /** Starts programs in containers. Default: none can be. */
  readonly runInContainer?: RunInContainer | undefined;
  /** Results of earlier openings of the instance, to which this one adds its own. */
  readonly history: OpeningHistory;
  /** Set when the backend wants OAuth. */
  readonly account?: BackendAccount | undefined;
  /** Tokens for each request. Default: none is sent. */
  readonly tokens?: BearerTokens | undefined;
  /** The only era that is tried. Default: both. */
  readonly era?: PinnedEra | undefined;
}

/** The part of the options that the owner of a transport knows. */
export interface OpeningHooks extends Pick<OpenOptions, 'onStarted' | 'onWithheld' | 'relistTools' | 'room'> {
  /** The node that runs the instance drains it, or takes it back. */
  readonly onDraining?: (isDraining: boolean) => void;
  /** Longest start of a program. Default: that of DEFAULT_POLICY. */
  readonly startTimeoutMs?: number;
}

/** Opens the transport of one instance. */
export type Open = (signal: AbortSignal, hooks?: OpeningHooks) => Promise<Transport>;

/** The results of the openings of one instance. */
export interface OpeningHistory {
  /**
   * Over stdio: the next opening goes without the probe for the modern era, because the program left it unanswered, or the last
   * opening with it failed. Undefined: no opening has failed since the probe was answered.
   */
  skipsProbe?: boolean | undefined;
  /** The backend announced the modern era and then answered nothing in it: the legacy one is tried first. Source: ADR 121. */
  prefersLegacy?: true;
  /** What is known of the command, also from other instances. Default: nothing. */
  readonly command?: CommandHistory | undefined;
}

/** What running a command has shown. */
export interface CommandHistory {
  /** Programs of it end when a request is cancelled, so they get no cancellation any more. Source: ADR 119. */
  endsWhenCancelled?: boolean;
  /** A program of it ended by itself, without a failure, right after its first call was answered. Source: ADR 142. */
  endsAfterCall?: boolean;
}

/** See Transport.leaveEra; once, and only from the modern era, because a server that announces it was asked for it first. */
export function leavesEra(
  era: Handshake['era'],
  { era: pinned, history }: Pick<OpenOptions, 'era' | 'history'>,
): boolean {
  if (era !== 'modern' || pinned !== undefined || history.prefersLegacy) return false;
  history.prefersLegacy = true;
  return true;
}

/** A backend that is a function: it gets the request, and returns the result or throws a value like `JsonRpcError`. */
export type InProcessHandler = (
  request: ExchangeRequest,
  context: { readonly signal: AbortSignal; readonly notify: (method: string, params: JsonObject) => void },
) => Promise<unknown> | unknown;

/**
 * What the module of each kind exports as `open` (<kind>/<kind>.ts): connects to the backend or starts it, and
 * shakes hands. Rejects with BACKEND_UNAVAILABLE, `delivered: 'no'`, with the last lines of stderr. Nothing is left
 * running after a rejection.
 */
export type OpenTransport = (definition: InstanceDefinition, options: OpenOptions) => Promise<Transport>;

/** A tool that is left out of lists. `reason`: why it cannot be called, as a clause without values of arguments. */
export interface WithheldTool {
  readonly tool: string;
  readonly reason: string;
}
