// Finds out how clients reach a template: whether the gateway requires a key, and which program a client may start
// itself. The answer of a gateway decides no command without the user's consent: any program may listen at its
// address.

import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  ALL_TEMPLATES,
  type ConnectTargets,
  type Key,
  type ProgramTarget,
  signInTarget,
} from '../../connect/connect-target.ts';
import { commandWords } from '../../domain/instances/command.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { isLoopback } from '../../domain/local-address.ts';
import { didYouMean } from '../../domain/nearest.ts';
import { PACKAGE_ROOT } from '../../domain/package-root.ts';
import { ownCommand } from '../../domain/version.ts';
import { readCatalogue } from '../../templates/catalogue.ts';
import { CommandFailure, GatewayRefusal } from '../failures.ts';
import { beginningOf } from '../remote/answering-url.ts';
import { elementsOf, type Fields, fields, objectsOf } from '../remote/answers.ts';
import type { Remote } from '../remote/remote.ts';

type GatewayApi = Pick<Remote, 'url' | 'request'>;

interface Choice {
  readonly key: Key;
  readonly env: Readonly<Record<string, string>>;
  /** The name of the environment from which `bridge` reads URL and key. */
  readonly environment?: string | undefined;
  /** Whether clients may start a program that only the gateway names. */
  readonly isTrusted: boolean;
  note(text: string): void;
}

/** The targets of one template, or of all without `wanted`. Throws CommandFailure for an unknown template. */
export async function findTargets(
  gateway: GatewayApi,
  wanted: string | undefined,
  choice: Choice,
): Promise<ConnectTargets> {
  const { env, environment, isTrusted, note } = choice;
  const { url } = gateway;
  const path = wanted === undefined ? '/mcp' : `/mcp/${wanted}`;
  const [instances, needsKey, resource] = await Promise.all([
    wanted === undefined ? [] : instancesOf(gateway, wanted),
    requiresKey(url),
    resourceAt(url, path),
  ]);
  const template = wanted ?? ALL_TEMPLATES;
  const key = needsKey ? choice.key : undefined;
  const http = { transport: 'http', template, url, key, endpoint: `${url}${path}` } as const;
  const signIn = signInTarget(template, url, resource);
  const base = { transport: 'stdio', template, url, env } as const;
  const own = ownProgram(instances, url, Object.keys(env));
  if (own !== undefined && (own.program === 'container' || !(await hasVariables(gateway, template)))) {
    if (isTrusted || (await isInCatalogue(own)))
      return { http, signIn, stdio: { ...base, ...own, key: undefined } };
    const words = JSON.stringify([own.command, ...own.args]);
    note(
      `the program ${words} is named by ${url} and not in the local catalogue; the bridge is used, or the program with --trust`,
    );
  }
  const named = environment === undefined ? ['--url', url] : ['--env', environment];
  const bridge: ProgramTarget = {
    ...base,
    program: 'bridge',
    key: environment === undefined ? key : undefined,
    // Absolute paths of this program: desktop programs often have another search path.
    command: process.execPath,
    args: [realpathSync(PROGRAM), 'bridge', ...(wanted === undefined ? [] : [wanted]), ...named],
  };
  return { http, signIn, stdio: bridge };
}

const PROGRAM = fileURLToPath(new URL('bin/stagedoor.mjs', PACKAGE_ROOT));

/** Whether it is the command of a template of this package. The commands inside a container are not known here. */
async function isInCatalogue({
  program,
  command,
  args,
}: Pick<ProgramTarget, 'command' | 'args' | 'program'>): Promise<boolean> {
  if (program === 'container') return false;
  const wanted = JSON.stringify([command, ...args]);
  const { templates } = await readCatalogue();
  return templates.some((template) => {
    const split = commandWords(template);
    return 'words' in split && JSON.stringify(split.words) === wanted;
  });
}

/** The instances of a template; empty when it has none, and for a caller that may not see them. */
async function instancesOf(gateway: GatewayApi, template: string): Promise<readonly Fields[]> {
  let registry: Fields;
  try {
    registry = fields(fields(await gateway.request('/gateway/registry')).templates);
  } catch (error) {
    if (!(error instanceof GatewayRefusal && error.code === 'INSUFFICIENT_PERMISSIONS')) throw error;
    // A key that only allows calls cannot read the registry, but its calls show whether it has the template.
    await gateway.request(`/mcp/${encodeURIComponent(template)}/tools/list`).catch((thrown: unknown) => {
      // A template without a healthy instance exists.
      if (!(thrown instanceof GatewayRefusal) || thrown.code === 'TEMPLATE_NOT_FOUND') throw thrown;
    });
    return [];
  }
  if (Object.hasOwn(registry, template)) return objectsOf(fields(registry[template]).instances);
  const views = objectsOf(fields(await gateway.request('/gateway/views')).views);
  const names = [...Object.keys(registry), ...views.map(({ id }) => String(id))];
  if (names.includes(template)) return [];
  const help = `"${ownCommand('instance register --help')}" shows how to register one`;
  const advice = didYouMean(template, names) ?? help;
  throw new CommandFailure(`template "${template}" not found; ${advice}`);
}

/** Whether the gateway adds variables to the programs of the template; their values may be secrets. */
async function hasVariables(gateway: GatewayApi, template: string): Promise<boolean> {
  const { environment } = fields(await gateway.request(`/gateway/templates/${template}`));
  return elementsOf(environment).length > 0;
}

async function requiresKey(url: string): Promise<boolean> {
  try {
    const { status, body } = await fetch(`${url}/gateway/stats`, {
      redirect: 'error',
      signal: AbortSignal.timeout(10_000),
    });
    await body?.cancel();
    return status === 401;
  } catch {
    return true; // unknown: a snippet with a key works in either case
  }
}

/**
 * The address of a path for clients whose user signs in, as the gateway names it; undefined where no user can.
 * Source: RFC 9728.
 */
async function resourceAt(url: string, path: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/.well-known/oauth-protected-resource${path}`, {
      redirect: 'error',
      signal: AbortSignal.timeout(10_000),
    });
    const { resource, authorization_servers: servers } = fields(jsonIn(await beginningOf(response)));
    const isUsable =
      response.ok && elementsOf(servers).length > 0 && typeof resource === 'string' && URL.canParse(resource);
    return isUsable && /^https?:\/\/[\w.:[\]-]+\/mcp[\w./-]*$/.test(resource) ? resource : undefined;
  } catch {
    return undefined;
  }
}

/** The program that a client on this machine can start: in a container of a local engine, else the registered command. */
function ownProgram(
  instances: readonly Fields[],
  url: string,
  variables: readonly string[],
): Pick<ProgramTarget, 'command' | 'args' | 'program'> | undefined {
  if (!isLoopback(new URL(url).hostname)) return undefined;
  const programs = instances.filter((record) => record.transport === 'stdio' && wordsOf(record).length > 0);
  const { inContainers = [], others = [] } = Object.groupBy(programs, ({ container }) =>
    typeof container === 'string' ? 'inContainers' : 'others',
  );
  const named = variables.flatMap((name) => ['-e', name]); // the engine passes on the values that it has
  for (const record of inContainers) {
    const id = String(record.container);
    const engine = /^[0-9a-f]+$/.test(id) ? engineOf(id) : undefined; // no option of the engine
    if (engine === undefined) continue;
    const args = ['exec', '-i', ...named, id.slice(0, SHORT_ID), ...wordsOf(record)];
    return { program: 'container', command: engine, args };
  }
  const [command, ...args] = wordsOf(others.find(isPlain) ?? {});
  return command === undefined ? undefined : { program: 'command', command, args };
}

const SHORT_ID = 12;

function engineOf(id: string): string | undefined {
  return ['docker', 'podman'].find(
    (engine) =>
      spawnSync(engine, ['container', 'inspect', id], { stdio: 'ignore', timeout: 10_000, windowsHide: true })
        .status === 0,
  );
}

/** Whether the program needs no folder and no variables. */
function isPlain(record: Fields): boolean {
  const { working_dir: folder, env_vars: variables } = record;
  const needsNone = typeof folder !== 'string' && Object.keys(fields(variables)).length === 0;
  return needsNone && !wordsOf(record).some(dependsOnFolder);
}

function dependsOnFolder(word: string): boolean {
  const isPackage = word.startsWith('@') || /^https?:/.test(word);
  const isAbsolute = /^(\/|[A-Za-z]:[\\/])/.test(word);
  return !isPackage && !isAbsolute && (/[\\/]/.test(word) || /^\.|\.(m|c)?[jt]s$|\.py$/.test(word));
}

/** The words of a command; empty without one, which is shown only with gateway:write. */
function wordsOf({ command, args }: Fields): readonly string[] {
  return typeof command === 'string' ? [command, ...elementsOf(args).map(String)] : [];
}
