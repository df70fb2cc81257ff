// Checks the options that the compiler of an embedding program cannot check: numbers, names that may come from a file, and
// options that do not exist, such as renamed ones, which it lets through in an object that was built before. A wrong value would
// fail later, far from its cause, or have no effect. Issues name fields and rules, never values. registry/checked-input.ts checks
// registrations. The options of the command line come from config.ts and are valid.

import { isAbsolute } from 'node:path';
import Type, { type TSchema } from 'typebox';
import { PolicyOptions } from '../balancing/policy-schemas.ts';
import type { ExchangeOptions, ExchangeRequest } from '../domain/calls/exchange.ts';
import type { GatewayError, ValidationItem } from '../domain/errors/errors.ts';
import { validationFailed } from '../domain/errors/request-errors.ts';
import { compileShape, locatedAt, refuseIssues } from '../domain/errors/validation.ts';
import { EVENTS, type EventName } from '../domain/events/events.ts';
import type { InstanceInput } from '../domain/instances/instance.ts';
import { definedFields } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { LIST_METHODS, type ListField } from '../domain/mcp/mcp.ts';
import type { GatewayOptions, InProcessInput } from './gateway-types.ts';

/**
 * The options, without undefined fields in the policy. Throws VALIDATION_ERROR, which names each invalid option, and the
 * expected values.
 */
export function checkedOptions(options: GatewayOptions): GatewayOptions {
  const items = locatedAt(['options'], shape.issues(options));
  refuseIssues(items.length > 0 ? items : unsafeOptions(options), 'The argument of createGateway');
  const { policy } = options;
  return policy === undefined ? options : { ...options, policy: definedFields(policy) };
}

/** The value is checked by the compiler of the program. */
const KNOWN = Type.Unknown();

type Group<Name extends keyof GatewayOptions> = Record<keyof NonNullable<GatewayOptions[Name]>, TSchema>;

const NODE = {
  id: KNOWN,
  worker: KNOWN,
  life: KNOWN,
  isAnyDefault: KNOWN,
  hasEphemeralNodes: KNOWN,
} satisfies Group<'node'>;

const OTHERS = {
  leasesPrograms: KNOWN,
  decideSession: KNOWN,
  openElsewhere: KNOWN,
  successorOf: KNOWN,
  mayBeStoredLater: KNOWN,
  isCutOff: KNOWN,
  untilLifeKnown: KNOWN,
} satisfies Group<'others'>;

const PROGRAMS = {
  passEnv: KNOWN,
  user: KNOWN,
  reaperPipe: KNOWN,
  protectedPaths: KNOWN,
} satisfies Group<'programs'>;

const SESSIONS = {
  max: wholeNumber(1, LIMITS.sessionsHardBound),
  idleMs: milliseconds(1, LIMITS.sessionIdleHardBoundMs),
  recover: Type.Boolean(),
  processes: wholeNumber(1, LIMITS.dedicatedProcessesHardBound),
  share: Type.Number({ exclusiveMinimum: 0, maximum: 1 }),
} satisfies Group<'sessions'>;

const OPTIONS = {
  store: KNOWN,
  node: optional(NODE),
  others: optional(OTHERS),
  storeChanges$: KNOWN,
  policy: PolicyOptions,
  definitions: KNOWN,
  aggregate: KNOWN,
  deniedNetworks: KNOWN,
  programs: optional(PROGRAMS),
  maxCallMs: milliseconds(1, LIMITS.callHardBoundMs),
  callLimiter: KNOWN,
  graceMs: milliseconds(0, LIMITS.graceHardBoundMs),
  sessions: optional(SESSIONS),
  stateKeys: KNOWN,
  memoryBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  requestBounds: KNOWN,
  changedCallers$: KNOWN,
  systemLookups: KNOWN,
  onFault: KNOWN,
  backendAccounts: KNOWN,
  discovery: KNOWN,
  inspect: KNOWN,
  random: KNOWN,
  clock: KNOWN,
} satisfies Record<keyof GatewayOptions, TSchema>;

const shape = compileShape(optional(OPTIONS), 'body');

/** Options that would weaken a protection without an error. */
function unsafeOptions({
  stateKeys,
  programs: { protectedPaths = [] } = {},
}: GatewayOptions): ValidationItem[] {
  const items = protectedPaths.flatMap(({ path }, index) =>
    isAbsolute(path)
      ? []
      : issue(['options', 'programs', 'protectedPaths', index], 'expected an absolute path'),
  );
  if (stateKeys?.some(({ length }) => length < LIMITS.secretBytes))
    items.push(issue(['options', 'stateKeys'], `expected at least ${LIMITS.secretBytes} bytes each`));
  return items;
}

/** The error for a request that no backend could get, or whose timeout would never end; undefined for a valid one. */
export function refusalOfRequest(
  template: string,
  request: ExchangeRequest,
  { timeoutMs = 1 }: ExchangeOptions = {},
): GatewayError | undefined {
  if (typeof template !== 'string') return invalid('template', 'expected the name of a template');
  if (typeof request?.method !== 'string') return invalid('request.method', 'expected the name of a method');
  return isTime(timeoutMs) && timeoutMs > 0
    ? undefined
    : invalid('timeoutMs', 'expected milliseconds above 0');
}

/** Throws VALIDATION_ERROR for a name that is not the name of a list. */
export function checkListField(field: ListField): void {
  if (typeof field !== 'string' || !Object.hasOwn(LIST_METHODS, field))
    throw invalid('field', 'expected the name of a list');
}

/** Throws VALIDATION_ERROR for a wait that is not a time; Infinity is one. */
export function checkWait(name: 'waitMs' | 'graceMs', waitMs: number | undefined): void {
  if (waitMs !== undefined && !isTime(waitMs)) throw invalid(name, 'expected milliseconds');
}

/** Throws VALIDATION_ERROR for a name that is not the name of an event. */
export function checkEventName(name: EventName): void {
  if (typeof name !== 'string' || !Object.hasOwn(EVENTS, name))
    throw invalid('name', 'expected the name of an event');
}

function isTime(ms: unknown): boolean {
  return typeof ms === 'number' && ms >= 0;
}

function optional(fields: Readonly<Record<string, TSchema>>) {
  return Type.Partial(Type.Object(fields), { additionalProperties: false });
}

function milliseconds(minimum: number, maximum: number) {
  return Type.Number({ minimum, maximum });
}

function wholeNumber(minimum: number, maximum: number) {
  return Type.Integer({ minimum, maximum });
}

function invalid(field: string, msg: string): GatewayError {
  return validationFailed([issue(['arguments', field], msg)]);
}

function issue(loc: ValidationItem['loc'], msg: string): ValidationItem {
  return { loc, msg, type: 'value_error' };
}

/** True for an instance that is a function. Throws VALIDATION_ERROR when its handler is something else. */
export function isFunctionInput(input: InstanceInput | InProcessInput): input is InProcessInput {
  if (typeof input !== 'object' || input === null || !('handler' in input)) return false;
  if (typeof input.handler === 'function') return true;
  throw validationFailed([issue(['body', 'instance', 'handler'], 'expected a function')]);
}
