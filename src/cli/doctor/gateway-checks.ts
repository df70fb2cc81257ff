// The checks of `stagedoor doctor` that ask a running gateway about its instances, lists, nodes, roles and views.

import type { Config } from '../../config/config.ts';
import { isBuiltIn } from '../../domain/accounts/account.ts';
import { templatesIn } from '../../domain/accounts/rights.ts';
import { counted } from '../../domain/text.ts';
import { ownCommand } from '../../domain/version.ts';
import { WAITING_REASONS } from '../../domain/views/approval.ts';
import { CertificateRefused, GatewayRefusal } from '../failures.ts';
import { printable } from '../output.ts';
import {
  fields,
  instancesOf,
  objectsOf,
  shownReasonOf,
  shownStateOf,
  warningsOf,
} from '../remote/answers.ts';
import { findGateway } from '../remote/find-gateway.ts';
import type { Remote } from '../remote/remote.ts';
import type { Terminal } from '../terminal.ts';
import { attemptAsync, type CheckResult, ok, warn } from './result.ts';

/** The checks, in the order of the output. */
export const GATEWAY_CHECKS = {
  instances: whereOneRuns(checkInstances),
  lists: whereOneRuns(checkLists),
  nodes: whereOneRuns(checkNodes),
  roles: whereOneRuns(checkRoles),
  views: whereOneRuns(checkViews),
};

/** The check, which has nothing to do without a running gateway. */
function whereOneRuns(check: (gateway: Remote, config: Config) => Promise<readonly CheckResult[]>) {
  return async (config: Config, terminal: Terminal): Promise<readonly CheckResult[]> => {
    const gateway = await attemptAsync(() => findGateway(undefined, terminal));
    if (gateway === undefined || gateway instanceof Error) return [ok('no gateway to ask')];
    return check(gateway, config);
  };
}

/** Finds instances of a running gateway that get no calls. */
async function checkInstances(gateway: Remote): Promise<readonly CheckResult[]> {
  const registry = await attemptAsync(() => gateway.request('/gateway/registry'));
  // checkLists says what to do then.
  if (registry instanceof Error) return [ok(`not checked: ${registry.message}`)];
  const records = instancesOf(registry);
  const unhealthy = records.filter((record) => shownStateOf(record) !== 'healthy');
  const named = unhealthy.slice(0, MAX_NAMED).map((record) => {
    const { template_name: template, id } = record;
    const because = shownReasonOf(record);
    const advice = `"${ownCommand(`doctor ${template}`)}" asks its servers`;
    return warn(
      printable(`${template}/${id} is ${shownStateOf(record)}${because && `: ${because}`}`),
      advice,
    );
  });
  const others = unhealthy.length - named.length;
  const advice = `"${ownCommand('instance list')}" lists them`;
  if (others > 0) return [...named, warn(`and ${counted(others, 'other instance')} not healthy`, advice)];
  return named.length > 0 ? named : [ok(`${counted(records.length, 'instance')} healthy at ${gateway.url}`)];
}

/** The most instances that have a line of their own. */
const MAX_NAMED = 10;

/** Finds items that a running gateway leaves out of its lists at `/mcp`. */
async function checkLists(gateway: Remote): Promise<readonly CheckResult[]> {
  const registry = await attemptAsync(() => gateway.request('/gateway/registry'));
  if (registry instanceof GatewayRefusal) {
    const text = `not checked, since ${gateway.url} does not show its templates: ${registry.message}`;
    return [warn(text, `"${ownCommand('gateway login admin')}" first`)];
  }
  if (registry instanceof CertificateRefused) return [warn(registry.message, null)];
  if (registry instanceof Error) return [ok(`no gateway to ask: ${registry.message}`)];
  const templates = Object.entries(fields(fields(registry).templates));
  const found = templates.flatMap(([template, view]) =>
    objectsOf(fields(view).withheld).map(({ list, name, reason }) => {
      const isWaiting = Object.values<unknown>(WAITING_REASONS).includes(reason);
      const where = isWaiting ? '' : ` from the ${list} at /mcp`;
      const command = (what: string) => `"${ownCommand(`template ${what} ${template}`)}"`;
      return warn(
        printable(`${template}: ${name} is withheld${where}: ${reason}`),
        isWaiting ? `${command('tools')} shows it, ${command('approve')} approves it` : 'correct the server',
      );
    }),
  );
  return found.length > 0 ? found : [ok(`nothing is withheld at ${gateway.url}/mcp`)];
}

/** Finds nodes that share the database of a running gateway, and not its secret, version or settings. */
async function checkNodes(gateway: Remote): Promise<readonly CheckResult[]> {
  const answer = await attemptAsync(() => gateway.request('/gateway/nodes'));
  // checkLists says what to do then.
  if (answer instanceof Error) return [ok(`not checked: ${answer.message}`)];
  const warnings = warningsOf(answer).map((line) =>
    warn(printable(line), 'start it again with what the others have'),
  );
  if (warnings.length > 0) return warnings;
  return [ok(`the nodes at the database of ${gateway.url} have the same secret, version and settings`)];
}

/**
 * Finds roles that users of a running gateway have, and templates that roles name, without a definition. No answer of a
 * gateway has its roles: those are of the settings that this command reads.
 */
async function checkRoles(gateway: Remote, { roles }: Config): Promise<readonly CheckResult[]> {
  const users = await attemptAsync(() => gateway.request('/auth/users'));
  const registry = await attemptAsync(() => gateway.request('/gateway/registry'));
  // checkLists says what to do then.
  if (users instanceof Error) return [ok(`not checked: ${users.message}`)];
  const lost = objectsOf(users).filter(({ role }) => {
    const name = String(role);
    return !isBuiltIn(name) && !Object.hasOwn(roles, name);
  });
  const ofUsers = lost.map(({ username, role }) =>
    warn(
      printable(`${username} has the role ${role}, which the settings here do not define`),
      'define it in `roles`, or give the user another one; "--config <file>" if the gateway has other settings',
    ),
  );
  const known = registry instanceof Error ? undefined : Object.keys(fields(fields(registry).templates));
  const ofTemplates = Object.entries(roles).flatMap(([role, { templates = [], tools = [] }]) =>
    [...new Set([...templates, ...templatesIn(tools)])]
      .filter((name) => known?.includes(name) === false)
      .map((name) => warn(`the role ${role} names the template ${name}, which does not exist`, null)),
  );
  const found = [...ofUsers, ...ofTemplates];
  return found.length > 0 ? found : [ok(`each role at ${gateway.url} is defined in the settings here`)];
}

/** Finds the faults of the views of a running gateway. */
async function checkViews(gateway: Remote): Promise<readonly CheckResult[]> {
  const answer = await attemptAsync(() => gateway.request('/gateway/views'));
  // checkLists says what to do then.
  if (answer instanceof Error) return [ok(`not checked: ${answer.message}`)];
  const found = objectsOf(fields(answer).views).flatMap(({ id, problems }) =>
    objectsOf(problems).map(({ code, message }) => {
      const command = ownCommand(`view ${code === 'tool_withheld' ? 'tools' : 'preview'} ${id}`);
      return warn(printable(`${id}: ${message}`), `"${command}" shows the view`);
    }),
  );
  return found.length > 0 ? found : [ok(`no problem at ${gateway.url}`)];
}
