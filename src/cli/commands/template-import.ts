// `stagedoor template import`: the servers of another client, or of a server.json, become templates of a gateway,
// and instances where the file says how to start or reach them.

import { basename, dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { filePieces } from '../../config/read-file.ts';
import { fileFault } from '../../domain/errors/errors.ts';
import { isMissing } from '../../domain/instances/start-failure.ts';
import { bytesWithin } from '../../domain/memory/bounded-bytes.ts';
import type { ImportedFile, RefusedEntry } from '../../templates/imported-server.ts';
import type { Command, CommandInput } from '../command.ts';
import { Cancelled, CommandFailure, UsageError } from '../failures.ts';
import type { Placeholders } from '../import/placeholders.ts';
import type { PlannedImport } from '../import/plan.ts';
import { indentedJson, printable, type TableColumns, table } from '../output.ts';
import { type Fields, fields, instancesOf, shownReasonOf } from '../remote/answers.ts';
import { CLIENT_OPTIONS } from '../remote/client-options.ts';
import { findGateway, requireGateway } from '../remote/find-gateway.ts';
import type { Remote } from '../remote/remote.ts';
import { isAgreed, type Terminal } from '../terminal.ts';
import { REGISTRY_OPTION, registryOf } from './template-search.ts';

export const templateImport: Command = {
  name: 'template import',
  positionals: '<file>',
  summary:
    'Import the servers of another MCP client (claude_desktop_config.json, mcp.json) or of a registry (server.json); - reads standard input',
  options: {
    '--dry-run': 'Show what would be imported, and change nothing',
    '-y, --yes': 'Import without asking',
    '--from-registry': 'The argument is the name of a server in the registry, as "template search" prints it',
    ...REGISTRY_OPTION,
    ...CLIENT_OPTIONS,
    '--json': 'Print the result as JSON; needs --yes or --dry-run without a terminal',
  },
  examples: ['template import mcp.json --dry-run', 'template import mcp.json --yes'],
  run: async (input, terminal) => {
    const isDry = input.has('dry-run');
    const file = input.positional(0);
    const mayAsk = terminal.canAsk && file !== '-';
    if (!isDry && !input.has('yes') && !mayAsk)
      throw new UsageError(
        'there is no terminal to ask at: --yes imports, --dry-run shows what would be imported',
      );
    const read = await readServers(file, input, terminal);
    const gateway = isDry
      ? await findGateway(input.text('url'), terminal, input.has('trust'))
      : await requireGateway(input, terminal);
    const [{ planImport }, { Placeholders }] = await Promise.all([
      import('../import/plan.ts'),
      import('../import/placeholders.ts'),
    ]);
    const plan = await planImport(read.servers, gateway);
    await show(input, terminal, plan);
    const rows = isDry ? plan.map((each) => rowOf(each, each.state)) : [];
    if (!isDry && !(await isConfirmed(input, terminal, plan))) {
      terminal.complain('nothing was imported; --yes imports');
      return 1;
    }
    const folder = file === '-' ? terminal.folder : dirname(resolve(terminal.folder, file));
    const values = new Placeholders({ ...terminal, canAsk: mayAsk }, read.inputs, folder);
    if (!isDry && gateway !== undefined)
      for (const each of plan) {
        const row = await importOne(each, gateway, values);
        rows.push(row);
        if (!input.has('json')) report(row, terminal);
      }
    if (!isDry && gateway !== undefined) await complainOfMissing(rows, gateway, terminal);
    const refused = read.refused.map(refusedRow);
    if (input.has('json')) terminal.print(indentedJson({ servers: [...rows, ...refused] }));
    else for (const row of refused) report(row, terminal);
    return [...rows, ...refused].some(({ outcome }) => outcome === 'failed') ? 1 : 0;
  },
};

interface Row extends Fields {
  readonly name: string;
  readonly outcome: string;
  readonly error?: string;
  readonly reason?: string;
}

const MAX_INPUT_BYTES = 5 * 1024 * 1024;

/** Reads the servers in a file. Throws CommandFailure for one that cannot be read, or is of no known kind. */
async function readServers(file: string, input: CommandInput, terminal: Terminal): Promise<ImportedFile> {
  if (!input.has('from-registry') && input.has('registry'))
    throw new UsageError('--registry requires --from-registry');
  const [{ readImported }, { TemplateError }] = await Promise.all([
    import('../../templates/imported.ts'),
    import('../../templates/definition.ts'),
  ]);
  const text = input.has('from-registry')
    ? await (await import('../import/registry-client.ts')).publishedDocument(
        registryOf(input, terminal),
        file,
      )
    : file === '-'
      ? await standardInput()
      : await fileText(resolve(terminal.folder, file));
  try {
    return readImported(text, file === '-' ? 'standard input' : basename(file));
  } catch (thrown) {
    if (!(thrown instanceof TemplateError)) throw thrown;
    throw new CommandFailure(`${file} ${thrown.message}`, { cause: thrown });
  }
}

/** The text of a file, a pipe or a device. Throws CommandFailure. */
export async function fileText(path: string): Promise<string> {
  try {
    return await wholeText(filePieces(path), path);
  } catch (thrown) {
    if (thrown instanceof CommandFailure) throw thrown;
    throw new CommandFailure(`${path} cannot be read (${fileFault(thrown)})`, {
      cause: thrown,
    });
  }
}

/** The whole text of standard input. Throws CommandFailure. */
export function standardInput(): Promise<string> {
  return wholeText(process.stdin, 'standard input');
}

/** The text of all pieces. Pipes and devices have no size before they are read. Throws CommandFailure over MAX_INPUT_BYTES. */
async function wholeText(pieces: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const bytes = await bytesWithin(pieces, MAX_INPUT_BYTES);
  if (bytes === undefined) throw new CommandFailure(`${name} has more than ${MAX_INPUT_BYTES} bytes`);
  return bytes.toString('utf8');
}

async function show(input: CommandInput, terminal: Terminal, plan: readonly PlannedImport[]): Promise<void> {
  if (input.has('json') && (input.has('yes') || input.has('dry-run'))) return;
  const { shownTarget } = await import('../import/plan.ts');
  const columns: TableColumns<PlannedImport> = {
    TEMPLATE: 'template',
    'IN THE FILE': ({ server }) => server.name,
    STATE: 'state',
    'RUNS OR CONNECTS TO': ({ server }) => shownTarget(server),
    NEEDS: ({ server }) => server.needs.join(', '),
  };
  const lines = plan.length === 0 ? 'no servers to import' : table(terminal, columns, plan);
  // With --json standard output is for the result.
  if (input.has('json')) terminal.complain(lines);
  else terminal.print(lines);
}

async function isConfirmed(
  input: CommandInput,
  terminal: Terminal,
  plan: readonly PlannedImport[],
): Promise<boolean> {
  const { length } = plan.filter(({ state }) => state !== 'unchanged');
  if (length === 0 || input.has('yes')) return true;
  const question = `The gateway runs these commands and connects to these addresses. Import ${length}?`;
  return isAgreed(terminal, question);
}

/** Imports one server. Throws only for Ctrl-C at a question. */
async function importOne(planned: PlannedImport, gateway: Remote, values: Placeholders): Promise<Row> {
  const { server, template, state, isFiled = false } = planned;
  if (state === 'unchanged') return rowOf(planned, 'unchanged');
  const path = `/gateway/templates/${encodeURIComponent(template)}/definition`;
  try {
    const instance = server.instance && (await values.filled(server.name, server.instance));
    if (!isFiled)
      await gateway.request(path, { method: 'PUT', body: { id: template, ...server.definition } });
    if (instance === undefined) return rowOf(planned, 'imported');
    const [{ firstInstanceId }, { entryDigestOf }] = await Promise.all([
      import('../import/plan.ts'),
      import('../import/placeholders.ts'),
    ]);
    const id = firstInstanceId(template);
    const body = {
      template_name: template,
      instance: { id, ...instance, metadata: { imported: entryDigestOf(server.instance) } },
    };
    try {
      await gateway.request('/gateway/register', { method: 'POST', body });
    } catch (thrown) {
      // A template that cannot be used is not left behind.
      if (state === 'new' && !isFiled)
        await gateway.request(path, { method: 'DELETE' }).catch(() => undefined);
      throw thrown;
    }
    return { ...rowOf(planned, 'imported'), instance: id, is_filed: isFiled };
  } catch (thrown) {
    if (thrown instanceof Cancelled || !(thrown instanceof CommandFailure || thrown instanceof UsageError))
      throw thrown;
    return { ...rowOf(planned, 'failed'), error: thrown.message };
  }
}

/** The number of looks at instances that start, and the ms between the first two looks; the time doubles with each look. */
const LOOKS = 5;
const LOOK_MS = 50;

/** Names the imported instances whose program does not exist on the machine of the gateway. */
async function complainOfMissing(rows: readonly Row[], gateway: Remote, terminal: Terminal): Promise<void> {
  const ids = new Set(
    rows.flatMap(({ template, instance }) => (instance ? [`${template}/${instance}`] : [])),
  );
  let found: readonly Fields[] = [];
  for (let looks = 0; ids.size > 0 && looks < LOOKS; looks += 1) {
    if (looks > 0) await sleep(LOOK_MS * 2 ** (looks - 1));
    // Without the right to see the registry there is no such hint.
    const registry = await gateway.request('/gateway/registry').catch(() => undefined);
    const imported = instancesOf(registry).filter((each) => ids.has(`${each.template_name}/${each.id}`));
    found = imported.filter(({ command }) => typeof command === 'string');
    if (!found.some(mayBeMissing)) break;
  }
  for (const record of found) {
    const reason = shownReasonOf(record);
    const remedy = /is not a folder/.test(reason)
      ? 'make it where the gateway runs, or correct "cwd"'
      : 'install the program where the gateway runs, or correct the command';
    if (isMissing(reason)) terminal.complain(printable(`${record.id} ${reason}; ${remedy}`));
  }
}

/** True until a start has found the program: one that starts, and may be queued, has a process from then on. */
function mayBeMissing(record: Fields): boolean {
  return record.state === 'starting' && record.pid === null && shownReasonOf(record) === '';
}

function rowOf({ server, template }: PlannedImport, outcome: string): Row {
  return { name: server.name, template, outcome, needs: server.needs };
}

function refusedRow({ name, problem, isDisabled }: RefusedEntry): Row {
  return isDisabled === true
    ? { name, outcome: 'skipped', reason: problem }
    : { name, outcome: 'failed', error: problem };
}

function report(row: Row, terminal: Terminal): void {
  const { name, template, outcome, instance, error, reason, is_filed: isFiled } = fields(row);
  if (outcome === 'skipped') terminal.print(printable(`${name}: skipped: ${reason}`));
  else if (outcome === 'failed') terminal.complain(printable(`${name}: not imported: ${error}`));
  else if (outcome === 'unchanged') terminal.print(printable(`${name}: ${template} is unchanged`));
  else if (isFiled === true)
    terminal.print(printable(`${name}: ${instance} starts in the template ${template}`));
  else {
    const started = instance === undefined ? '' : `, ${instance} starts`;
    terminal.print(printable(`${name}: the template ${template} is stored${started}`));
  }
}
