// The options of an opening: those that the module of each transport kind gets, and the part that the owner of the
// transport provides. Also the memory of the openings of an instance.

import type { LookupFunction } from 'node:net';
import type { ExchangeRequest } from '../domain/calls/exchange.ts';
import type { HostDuty, InstanceDefinition } from '../domain/instances/instance.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { Handshake, PinnedEra } from '../domain/mcp/mcp.ts';
import type { InstanceHeldBytes } from '../domain/memory/held-bytes.ts';
import type { UserShares } from '../domain/memory/user-shares.ts';
import type { Timing } from '../domain/time/task-scheduler.ts';
import type { AddressCheck } from '../net/network-guard.ts';
import type { BackendHandshakes } from '../net/tls/backend-handshakes.ts';
import type { ProgramOptions } from '../programs/child-process.ts';
import type { BackendAccount, BearerTokens } from './backend-account.ts';
import type { Transport, TransportDiagnostics } from './transport.ts';

/** The options of an opening, besides the definition of the instance: what all kinds use, and a group for each sort of backend. */
export interface OpenOptions extends Timing, Omit<OpeningHooks, 'onDuty' | 'startTimeoutMs'> {
  /** Aborting it cancels the opening, and stops a started program. */
  readonly signal: AbortSignal;
  readonly handshakeTimeoutMs: number;
  /** The name and version of the gateway, which are sent to backends. */
  readonly client: { readonly name: string; readonly version: string };
  /** Counts the memory of incomplete answers of the instance. Default: not counted. */
  readonly answers?: InstanceHeldBytes | undefined;
  /** Counts the memory of messages that wait to be sent, by caller. Default: not counted. Source: ADR 90. */
  readonly waitingBytes?: UserShares | undefined;
  /**
   * Counts the memory of results of handshakes with the instance that are kept: so many bytes more, or fewer. False: there is no
   * room, and nothing was counted. Default: not counted.
   */
  readonly countHandshake?: ((bytes: number) => boolean) | undefined;
  /** The results of earlier openings of the instance; this opening adds its own. */
  readonly history: OpeningHistory;
  /** The only era that is tried. Default: both. */
  readonly era?: PinnedEra | undefined;
  readonly network: NetworkOptions;
  readonly programs?: ProgramOptions;
  /** The functions that serve `in-process` instances, by `serverId`. */
  readonly handlers: ReadonlyMap<string, InProcessHandler>;
}

/** The options of kinds that connect to an endpoint. */
export interface NetworkOptions {
  /** True for addresses that no connection may reach; the resolved address is checked. */
  readonly isDenied: AddressCheck;
  /** Looks up the names of endpoints. Default: the look-up of Node. */
  readonly lookup?: LookupFunction | undefined;
  /** Reads the TLS handshakes with all backends in turn. Default: only those of this opening. */
  readonly handshakes?: BackendHandshakes | undefined;
  /** The accounts at the backend; set when it wants OAuth. */
  readonly account?: BackendAccount | undefined;
  /** The tokens for requests. Default: none is sent. */
  readonly tokens?: BearerTokens | undefined;
}

/** The part of the options that the owner of a transport provides. */
export interface OpeningHooks {
  /** The number of further dedicated processes that the instance may run. Default: no limit. */
  readonly room?: (() => number) | undefined;
  /** Called when a program was started; `diagnostics` returns its state during the opening. Default: ignored. */
  readonly onStarted?: ((diagnostics: () => TransportDiagnostics) => void) | undefined;
  /** Called once for a tool that is left out of lists, and again when the reason has changed. Default: ignored. */
  readonly onWithheld?: ((withheld: WithheldTool) => void) | undefined;
  /**
   * Lists the tools again, for a call that was refused because a header is missing. Undefined when too many calls
   * wait for that. Never rejects. Default: the tools are not listed again.
   */
  readonly relistTools?: (() => Promise<void> | undefined) | undefined;
  /** Called with what the node that runs the instance does with it, and again when that has changed. Default: ignored. */
  readonly onDuty?: (duty: HostDuty) => void;
  /** The longest start of a program, in ms. Default: that of DEFAULT_POLICY. */
  readonly startTimeoutMs?: number;
}

/** Opens the transport of one instance. */
export type Open = (signal: AbortSignal, hooks?: OpeningHooks) => Promise<Transport>;

/** The results of the openings of one instance. */
export interface OpeningHistory {
  /**
   * True over stdio when the next opening omits the probe for the modern era, because the program left the probe
   * unanswered, or the last opening with it failed. Undefined: no opening has failed since the probe was answered.
   */
  skipsProbe?: boolean | undefined;
  /**
   * True when the backend announced the modern era and then answered nothing in it: the legacy era is tried first.
   * Source: ADR 10.
   */
  prefersLegacy?: true;
  /** The history of the command, also from other instances. Default: none. */
  readonly command?: CommandHistory | undefined;
}

/** The findings of earlier runs of a command. */
export interface CommandHistory {
  /**
   * True when its programs end after the cancellation of a request: they get no cancellations any more. Source: ADR
   * 119.
   */
  endsWhenCancelled?: boolean;
  /** True when one of its programs ended by itself, without a failure, right after its first answer. Source: ADR 113. */
  endsAfterCall?: boolean;
}

/**
 * See Transport.leaveEra. Returns true once, and only for the modern era, since a server that announces it was asked
 * in that era first.
 */
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
 * The export `open` of the module of each kind (<kind>/<kind>.ts): connects to the backend or starts it, and shakes
 * hands. Throws BACKEND_UNAVAILABLE and `delivered: 'no'`, with the last lines of standard error. Nothing is
 * left running after a rejection.
 */
export type OpenOfKind = (definition: InstanceDefinition, options: OpenOptions) => Promise<Transport>;

/** A tool that is left out of lists. `reason` says why it cannot be called, as a clause without values of arguments. */
export interface WithheldTool {
  readonly tool: string;
  readonly reason: string;
}
