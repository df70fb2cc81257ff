// `stagedoor doctor`: checks of the conditions for a gateway that would start here now, with advice; and the faults of a server.

import { counted } from '../../domain/text.ts';
import { type Command, type CommandInput, JSON_OPTION, type OptionTable } from '../command.ts';
import type { NamedCheckResult } from '../doctor/checks.ts';
import type { ServerReport } from '../doctor/server-report.ts';
import { isServerUrl } from '../doctor/server-url.ts';
import { UsageError } from '../failures.ts';
import { wrapLines } from '../help.ts';
import { printable, printResult } from '../output.ts';
import { URL_OPTION } from '../remote/client-options.ts';
import { findGateway, namedUrl } from '../remote/find-gateway.ts';
import { SETTING_OPTIONS } from '../setting-options.ts';
import { type Terminal, terminalWith } from '../terminal.ts';

/** Options for the gateway, and of `doctor` with a server. */
const SERVER_OPTIONS: OptionTable = {
  ...URL_OPTION,
  '--header <NAME=VALUE>...': 'Header for the server at a URL',
  '--wait <seconds>': 'Longest wait until a server at a URL or of a command is open, 1 to 600; default 60',
};

/** The command `doctor`. None of its checks changes anything. */
export const doctor: Command = {
  name: 'doctor',
  positionals: '[server]',
  hasProgram: true,
  summary:
    'Check Node, settings, database, ports, files, templates, proxies and the clock, with advice; or name the faults of a server: of a template at a gateway, of a URL, or of a command after --; exit code 1 when a check fails or a fault is found',
  settingsOf: 'gateway start',
  options: { ...SETTING_OPTIONS, ...SERVER_OPTIONS, ...JSON_OPTION },
  examples: [
    'doctor',
    'doctor --config gateway.yaml --json',
    'doctor everything',
    'doctor http://127.0.0.1:9000/mcp',
    'doctor -- npx -y @modelcontextprotocol/server-everything',
  ],
  run: async (input, terminal) => {
    refuseUnused(input);
    if (input.positionals.length > 0 || input.program !== undefined) return examineServer(input, terminal);
    const { examine } = await import('../doctor/checks.ts');
    const asking = await naming(input, terminal);
    const checks = await terminal.busy('checking', () => examine(input, asking));
    const hasFailed = checks.some(({ status }) => status === 'fail');
    printResult(input, terminal, { ok: !hasFailed, checks }, () =>
      checks.map((each) => lines(terminal, each)).join('\n'),
    );
    return hasFailed ? 1 : 0;
  },
};

/** Throws UsageError for an option without effect. */
function refuseUnused(input: CommandInput): void {
  const isUrl = isServerUrl(input.positionals[0] ?? '');
  if (input.has('header') && !isUrl) throw new UsageError('--header is for a server at a URL');
  if (input.has('wait') && !isUrl && input.program === undefined)
    throw new UsageError('--wait is for a server at a URL or of a command after --');
}

/** The terminal with the gateway of --url in place of STAGEDOOR_URL, which the checks ask. */
async function naming(input: CommandInput, terminal: Terminal): Promise<Terminal> {
  const url = input.text('url');
  if (input.has('trust')) await findGateway(url, terminal, true);
  if (url === undefined) return terminal;
  return terminalWith(terminal, { env: { ...terminal.env, STAGEDOOR_URL: namedUrl(url, terminal.env) } });
}

async function examineServer(input: CommandInput, terminal: Terminal): Promise<number> {
  const { examineNamed } = await import('../doctor/server-report.ts');
  const report = await terminal.busy('examining', (progress) => examineNamed(input, terminal, progress));
  printResult(input, terminal, report, () => report.instances.map(serverText).join('\n\n'));
  return report.ok ? 0 : 1;
}

function serverText({ id, era, lists, findings }: ServerReport['instances'][number]): string {
  const counts = Object.entries(lists).map(([list, count]) => counted(count, list.slice(0, -1)));
  const about = [era === null ? 'not open' : `${era} era`, ...counts].join(', ');
  const faults = findings.flatMap(({ code, message, remedy }) => [
    printable(`  ${code}: ${message}`),
    ...(remedy === '' ? [] : [printable(`    ${remedy}`)]),
  ]);
  return [printable(`${id}: ${about}`), ...(faults.length === 0 ? ['  no fault was found'] : faults)].join(
    '\n',
  );
}

/** The column in which texts begin. */
const TEXT_AT = 17;
const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

function lines(terminal: Terminal, { check, status, text, advice }: NamedCheckResult): string {
  const head = `${terminal.paint(COLOURS[status], status.padEnd(4))}  ${check.padEnd(9)}  `;
  const width = (terminal.columns ?? Number.POSITIVE_INFINITY) - TEXT_AT;
  const texts = [text, ...(advice === null ? [] : [advice])].flatMap((each) => wrapLines(each, width));
  return head + texts.join(`\n${' '.repeat(TEXT_AT)}`);
}
