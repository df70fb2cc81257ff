// TABLE of the checks of `stagedoor doctor`, in the order of the output. No check changes anything.

import { access, constants, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { commandWords } from '../../domain/instances/command.ts';
import { isLoopback, localUrl } from '../../domain/local-address.ts';
import { counted } from '../../domain/text.ts';
import { systemClock } from '../../domain/time/clock.ts';
import { ownCommand } from '../../domain/version.ts';
import { describeDatabase } from '../../persistence/database-url.ts';
import { RegistryFileError, readRegistryFile } from '../../registry/files/registry-file.ts';
import { endOfCertificate } from '../../server/sockets/public-tls.ts';
import { stateFolderOf } from '../../server/storage.ts';
import { readCatalogue } from '../../templates/catalogue.ts';
import { credentialsPath } from '../../templates/command-exposure.ts';
import { unmetRequirement } from '../../templates/requirements.ts';
import { filesIn, usualUrls } from '../background/daemon-files.ts';
import type { CommandInput } from '../command.ts';
import { type DatabaseReport, databaseReport } from '../database/open-database.ts';
import { UsageError } from '../failures.ts';
import { beginningOf, gatewayAt } from '../remote/answering-url.ts';
import { namedUrl } from '../remote/find-gateway.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';
import { GATEWAY_CHECKS } from './gateway-checks.ts';
import { attemptAsync, type CheckResult, fail, ok, warn } from './result.ts';
import { checkSignIn } from './sign-in-check.ts';

export interface NamedCheckResult extends CheckResult {
  readonly check: string;
}

type Check = (config: Config, terminal: Terminal) => Promise<readonly CheckResult[]>;

const CHECKS: Readonly<Record<string, Check>> = {
  database: checkDatabase,
  redis: checkRedis,
  ports: checkPorts,
  tls: checkTls,
  'sign-in': checkSignIn,
  files: checkFiles,
  templates: checkTemplates,
  proxy: checkProxies,
  origins: checkOrigins,
  clock: checkClock,
  ...GATEWAY_CHECKS,
};

/** Runs every check; without usable settings, only those that need none. */
export async function examine(input: CommandInput, terminal: Terminal): Promise<readonly NamedCheckResult[]> {
  const node: NamedCheckResult = { check: 'node', ...ok(`${process.version}, ${process.execPath}`) };
  const advice = `"${ownCommand('config')}" shows where each setting comes from`;
  const named = (check: string, results: readonly CheckResult[]) =>
    results.map((result) => ({ check, ...result }));
  let config: Config;
  try {
    config = readSettings(input, terminal);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const faults = error.message.split('\n').map((line) => fail(line, advice));
    return [node, ...named('settings', faults)];
  }
  const warnings = config.warnings.map((line) => warn(line, advice));
  const found = await Promise.all(
    Object.entries(CHECKS).map(async ([check, run]) => named(check, await run(config, terminal))),
  );
  return [node, ...named('settings', warnings.length === 0 ? [ok('valid')] : warnings), ...found.flat()];
}

async function checkDatabase(config: Config, terminal: Terminal): Promise<readonly CheckResult[]> {
  const described = attempt(() => describeDatabase(config.databaseUrl, config.folder));
  if (described instanceof Error)
    return [fail(described.message, 'correct GATEWAY_DATABASE_URL or database_url')];
  const { place, file, printable } = described;
  if (place === 'memory') return [ok(`${printable}: in memory, lost when the gateway stops`)];
  if (file !== undefined && (await modeOf(file)) === undefined) {
    const folder = dirname(file);
    if (await isAllowed(folder, constants.W_OK))
      return [ok(`${printable} does not exist yet; the first start creates it`)];
    return [
      fail(`${printable} cannot be created: ${folder} cannot be written to`, 'choose another --database'),
    ];
  }
  const report = await databaseReport(config, terminal);
  return [databaseResult(printable, report), ...report.warnings.map((line) => warn(line, null))];
}

function databaseResult(
  name: string,
  { kind, reason, is_reachable: isReachable, migrations }: DatabaseReport,
): CheckResult {
  if (reason === null) return ok(`${name}: migrated`);
  const { pending = [], unknown = [] } = migrations ?? {};
  const failed = (advice: string | null) => fail(`${name}: ${reason}`, advice);
  if (!isReachable) return failed(kind === 'sqlite' ? null : 'start it, or correct its URL and its password');
  if (unknown.length > 0) return failed('use the version of stagedoor that changed it');
  if (pending.length === 0) return failed(`"${ownCommand('db status')}" says more`);
  const advice = `"${ownCommand('db migrate')}" applies them, and so does a start of the gateway`;
  return warn(`${name}: ${pending.length} migrations are pending`, advice);
}

/** Connects to Redis as a start does. */
async function checkRedis({ redisUrl: url }: Config): Promise<readonly CheckResult[]> {
  if (url === undefined) return [ok('off: limits are counted without Redis; redis_url changes that')];
  const { openRedisCounter } = await import('../../auth/limits/redis-counter.ts');
  let reason: string | undefined;
  const warnOf = (facts: { readonly reason?: string }): void => {
    reason = facts.reason;
  };
  const counter = await attemptAsync(() =>
    openRedisCounter({ url, clock: systemClock, log: { info: () => {}, warn: warnOf } }),
  );
  if (counter instanceof Error) return [fail(counter.message, 'correct redis_url or GATEWAY_REDIS_URL')];
  counter.close();
  const { host } = new URL(url);
  if (reason === undefined) return [ok(`Redis answers at ${host}`)];
  const advice =
    'start it, or correct redis_url or GATEWAY_REDIS_URL: until then limits are counted without it';
  return [warn(`Redis at ${host}: ${reason}`, advice)];
}

async function checkPorts({ listeners, portsDefaulted, metrics }: Config): Promise<readonly CheckResult[]> {
  const results = await Promise.all(listeners.map(checkAddress));
  // One of the two default ports is enough.
  const isEnough = portsDefaulted && results.some(({ status }) => status === 'ok');
  const judged = results.map((each) =>
    isEnough && each.status === 'fail' ? warn(each.text, each.advice) : each,
  );
  if (metrics.port === undefined) return judged;
  return [...judged, await checkAddress({ ...metrics, port: metrics.port })];
}

async function checkAddress({ host, port }: { host: string; port: number }): Promise<CheckResult> {
  const address = `${host}:${port}`;
  const code = port === 0 ? undefined : await bindingError(host, port);
  if (code === undefined) return ok(`${address} is free`);
  if (code === 'EACCES') return fail(`${address} may not be opened by this user`, 'choose a port above 1023');
  if (code !== 'EADDRINUSE') return fail(`${address} cannot be opened (${code})`, 'choose another --host');
  const user = await userOf(localUrl(host, port));
  if (user === 'gateway') return ok(`${address} is used by a gateway that is running`);
  if (user === 'silent')
    return fail(
      `${address} is used by a program that did not answer within ${ANSWER_MS / 1000} s`,
      'it may be a gateway that is busy: look again later; else end that program, or choose another port',
    );
  return fail(`${address} is used by another program`, 'end that program, or choose another port');
}

/**
 * The program at an address: a gateway, also when it serves only its metrics there, or another one. `silent`: it does
 * not say.
 */
async function userOf(url: string): Promise<'gateway' | 'other' | 'silent'> {
  const startedAtMs = performance.now();
  if ((await gatewayAt(url, ANSWER_MS)) !== undefined) return 'gateway';
  // It has waited in vain. A program that sends its answer without end has answered.
  const isSilent = performance.now() - startedAtMs >= ANSWER_MS;
  try {
    const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(ANSWER_MS) });
    if ((await beginningOf(response)).startsWith('# HELP stagedoor_')) return 'gateway';
    return isSilent ? 'silent' : 'other';
  } catch (error) {
    return isSilent || (error instanceof Error && error.name === 'TimeoutError') ? 'silent' : 'other';
  }
}

/** The longest wait for the answer of the program on a port, which shows whether it is a gateway, in ms. */
const ANSWER_MS = 2_000;

function bindingError(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** The files of the certificate, as a start would read them. */
async function checkTls({ tls: { cert, key } }: Config): Promise<readonly CheckResult[]> {
  if (cert === undefined || key === undefined)
    return [ok('off: the ports speak plain HTTP; tls.cert and tls.key change that')];
  const end = await attemptAsync(() => endOfCertificate({ cert, key }));
  if (end instanceof Error)
    return [fail(end.message, 'correct the files: the gateway does not start with them')];
  const { state, validTo } = end;
  const text = `${cert} ${state === 'expired' ? 'has expired' : 'is valid until'} ${validTo.toISOString()}`;
  if (state === 'expired') return [fail(text, 'renew it: clients refuse it')];
  return [state === 'soon' ? warn(text, 'renew it: clients refuse it after that') : ok(text)];
}

async function checkFiles(config: Config, terminal: Terminal): Promise<readonly CheckResult[]> {
  const described = attempt(() => describeDatabase(config.databaseUrl, config.folder));
  if (described instanceof Error) return []; // checkDatabase reports it
  const { file } = described;
  const folder = stateFolderOf(config, terminal.env);
  const { pid, log } = filesIn(folder);
  const secrets = [
    // A gateway with a key file that others can read does not start.
    ...(file === undefined ? [] : [secretFile('key', join(dirname(file), 'gateway.key'), fail)]),
    secretFile('tokens of "gateway login"', credentialsPath(terminal.env)),
    secretFile('process file', pid),
    secretFile('log', log),
  ];
  const registry = config.registryFile === undefined ? [] : await checkRegistryFile(config.registryFile);
  return [await checkStateFolder(folder), ...(await Promise.all(secrets)).flat(), ...registry];
}

async function checkRegistryFile(path: string): Promise<readonly CheckResult[]> {
  try {
    const { problems } = await readRegistryFile(path);
    if (problems.length === 0) return [ok(`registry file ${path}`)];
    return problems.map((problem) => warn(problem, `correct ${path}`));
  } catch (error) {
    if (!(error instanceof RegistryFileError)) throw error;
    return [fail(error.message, 'correct it, or choose another --registry-file')];
  }
}

async function checkStateFolder(folder: string): Promise<CheckResult> {
  const mode = await modeOf(folder);
  if (mode === undefined) return ok(`${folder} does not exist yet; the first start creates it`);
  if (!(await isAllowed(folder, constants.W_OK))) {
    const advice = 'change its owner, or choose another --state-dir';
    return fail(`the state folder ${folder} cannot be written to`, advice);
  }
  if (isPosix && (mode & 0o022) !== 0)
    return fail(`other users can write to the state folder ${folder}`, `chmod go-w ${folder}`);
  return ok(`state folder ${folder}`);
}

async function secretFile(what: string, path: string, report = warn): Promise<readonly CheckResult[]> {
  const mode = await modeOf(path);
  if (mode === undefined) return [];
  if (!isPosix || (mode & 0o077) === 0) return [ok(`${what} ${path}`)];
  return [report(`other users can read the ${what}: ${path}`, `chmod 600 ${path}`)];
}

async function checkTemplates(config: Config, { env }: Terminal): Promise<readonly CheckResult[]> {
  const { templates, problems } = await readCatalogue(config.templatesFolder);
  const path = env.PATH ?? '';
  const missing = templates.map(async ({ id, requires = [], ...template }) => {
    const split = commandWords(template);
    const [program] = 'problem' in split ? [] : split.words;
    if (!program || program.includes('${')) return [];
    if (!(await isFound(program, path, env.PATHEXT))) {
      const advice = 'install it, or start the gateway with a PATH that has it';
      return [warn(`${id}: there is no program "${program}" in PATH`, advice)];
    }
    const unmet = await unmetRequirement(requires, program, { PATH: path });
    return unmet === undefined ? [] : [warn(`${id}: ${unmet}`, 'install what is missing')];
  });
  const advice = `correct the file in ${config.templatesFolder ?? 'the package'}`;
  const all = [...problems.map((problem) => warn(problem, advice)), ...(await Promise.all(missing)).flat()];
  return all.length > 0 ? all : [ok(`the programs of ${counted(templates.length, 'template')} are in PATH`)];
}

async function isFound(program: string, path: string, extensions = ''): Promise<boolean> {
  const folders = /[\\/]/.test(program) ? [''] : path.split(delimiter);
  const endings = isPosix ? [''] : ['', ...extensions.split(';')];
  const candidates = folders.flatMap((folder) => endings.map((ending) => join(folder, program) + ending));
  const seen = await Promise.all(candidates.map((file) => isAllowed(file, constants.X_OK)));
  return seen.includes(true);
}

async function checkProxies(_config: Config, { env }: Terminal): Promise<readonly CheckResult[]> {
  const set = Object.entries(env).filter(([name, value]) => /^(https?|all)_proxy$/i.test(name) && value);
  if (set.length === 0) return [ok('no variable is set')];
  const names = set.map(([name]) => name).join(', ');
  const results: CheckResult[] = [];
  if (set.some(([, value]) => URL.parse(value ?? '')?.username)) {
    const text = `${names}: a URL has credentials, which programs of templates do not get`;
    results.push(warn(text, 'name the variable in stdio.pass_env if they need it'));
  }
  const exempt = (env.NO_PROXY || env.no_proxy || '').split(',').map((host) => host.trim());
  if (!exempt.some((host) => ['*', 'localhost', '127.0.0.1'].includes(host))) {
    const text = `${names}: clients on this machine may contact the gateway through the proxy`;
    results.push(warn(text, 'set NO_PROXY=localhost,127.0.0.1'));
  }
  if (results.length > 0) return results;
  return [ok(`${names}: programs of templates get it; the gateway itself connects directly`)];
}

/** Checks which web pages may call: `*` is ignored where a page could do so without credentials. */
async function checkOrigins({
  authEnabled,
  listeners,
  corsOrigins,
  allowedOrigins,
}: Config): Promise<readonly CheckResult[]> {
  const isPublic = authEnabled && listeners.some(({ host }) => !isLoopback(host));
  if (isPublic && corsOrigins.includes('*'))
    return [ok('web pages of all origins may call, with credentials')];
  const origins = [...corsOrigins, ...allowedOrigins].filter((origin) => origin !== '*');
  const others =
    origins.length === 0 ? 'no web page of another origin' : `web pages of ${origins.join(', ')}`;
  return [ok(`${others} may call; cors_origins lists those that may`)];
}

async function checkClock(_config: Config, terminal: Terminal): Promise<readonly CheckResult[]> {
  const named = attempt(() => namedUrl(undefined, terminal.env));
  if (named instanceof Error) return [fail(named.message, 'correct STAGEDOOR_URL')];
  for (const url of named === undefined ? usualUrls(terminal) : [named]) {
    const before = Date.now();
    const found = await gatewayAt(url, ANSWER_MS);
    const there = Date.parse(found?.headers?.get('date') ?? '');
    if (!Number.isNaN(there)) return [compareClock(found?.url ?? url, there - (before + Date.now()) / 2)];
  }
  return [ok(`${new Date().toISOString()}; no gateway to compare it with`)];
}

/** Compares two clocks in whole seconds, which is the precision of both. */
function compareClock(address: string, aheadMs: number): CheckResult {
  const seconds = Math.round(aheadMs / 1000);
  if (Math.abs(seconds) <= MAX_SECONDS) return ok(`the same as at ${address}`);
  const text = `the clock of ${address} is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} this one`;
  return warn(text, 'synchronise both clocks: tokens and keys expire by them');
}

/** The largest difference, in seconds, between clocks that count as equal. */
const MAX_SECONDS = 10;

const isPosix = process.platform !== 'win32';

async function modeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.mode;
}

function isAllowed(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}

function attempt<T>(work: () => T): T | Error {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}
