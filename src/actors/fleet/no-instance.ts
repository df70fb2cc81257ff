// Why no instance of a template takes a call: the error, which names instances and what keeps them.

import type { ToolRights } from '../../domain/accounts/rights.ts';
import { backendUnavailable, noHealthyInstance, toolNotFound } from '../../domain/errors/backend-errors.ts';
import type { GatewayError } from '../../domain/errors/errors.ts';
import type { InstanceState } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { nearName } from '../../domain/nearest.ts';
import { InstanceRef } from '../instances/instance-ref.ts';
import type { Instance, TemplateGroup } from './template-group.ts';

const MAY_RETURN: ReadonlySet<InstanceState> = new Set(['starting', 'unhealthy']);
const MAX_NAMED = 3;
/** The most tool lists in which a misspelt name is looked up: most instances have the same tools. */
const MAX_LISTS = 16;

/** A call that no instance takes. */
interface UntakenCall {
  /** The tool that the asked instances lack; undefined when they lack none. */
  readonly lacking: string | undefined;
  /** The ids of instances at which the call is not tried again. */
  readonly excluded: ReadonlySet<string> | undefined;
  /** The only instance that may answer; undefined when several may. */
  readonly only: InstanceRef | undefined;
  /** The tools that the caller may call. Default: all. */
  readonly allowed?: ToolRights | undefined;
}

/** Why no instance takes a call. */
export function noInstanceError(group: TemplateGroup, call: UntakenCall): GatewayError {
  const { lacking, only } = call;
  const unknown = lacking === undefined ? undefined : unknownTool(group, lacking, call);
  if (unknown !== undefined) return unknown;
  return only !== undefined
    ? backendUnavailable(`"${only.id}" is ${only.state}`, { delivered: 'no' })
    : noHealthyError(group);
}

/**
 * TOOL_NOT_FOUND, with the nearest name, for a tool that an instance lacks. Undefined when another instance
 * that is not excluded may become available, and may have the tool: it listed the tool before, or never listed any and
 * the name is not a misspelling.
 */
function unknownTool(
  group: TemplateGroup,
  tool: string,
  { excluded, only, allowed }: UntakenCall,
): GatewayError | undefined {
  const near = nearestTool(group, tool, allowed);
  const mayHave = (instance: Instance): boolean => {
    if (!MAY_RETURN.has(instance.state) || excluded?.has(instance.id)) return false;
    const tools = toolsOf(instance);
    return tools === undefined ? near === undefined : tools.includes(tool);
  };
  const mayExist = only === undefined && group.instances.some(mayHave);
  return mayExist ? undefined : toolNotFound(tool, group.template, near);
}

/**
 * NO_HEALTHY_INSTANCE with reasons such as `a is starting; b: connection refused; and 2 more`. Reasons hold
 * no secrets.
 */
export function noHealthyError({ template, byId, instances }: TemplateGroup): GatewayError {
  if (byId.size === 0) return noHealthyInstance(template, 'none is registered');
  const absent = instances.filter(({ state }) => state !== 'healthy');
  const named = absent.slice(0, MAX_NAMED).map(clauseOf);
  const more = absent.length - named.length;
  const rest = more === 0 ? [] : [`and ${more} more`];
  const plain = absent.slice(0, MAX_NAMED).map(plainClauseOf);
  return noHealthyInstance(template, [...named, ...rest].join('; '), [...plain, ...rest].join('; '));
}

function nearestTool(
  { instances, template }: TemplateGroup,
  tool: string,
  allowed: ToolRights | undefined,
): string | undefined {
  const lists = instances.map(toolsOf).filter((tools) => tools !== undefined);
  const names = new Set(lists.slice(0, MAX_LISTS).flat());
  return nearName(tool, names, allowed && ((name) => allowed.allow(template, name)));
}

function toolsOf(instance: Instance): readonly string[] | undefined {
  return instance instanceof InstanceRef ? instance.lastTools : undefined;
}

function clauseOf({ id, state, reason }: Instance): string {
  const hasReason = state === 'unhealthy' || state === 'stopped';
  return hasReason && reason !== null ? `${id}: ${reason}` : `${id} is ${state}`;
}

/** The clause that every caller may read: without the reason of a program, which may name paths of its machine. */
function plainClauseOf(instance: Instance): string {
  const { id, state, definition } = instance;
  const isEndpoint = instance instanceof InstanceRef && !runsProgram(definition);
  return isEndpoint ? clauseOf(instance) : `${id} is ${state}`;
}
