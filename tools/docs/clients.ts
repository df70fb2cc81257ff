// The setup of each kind of client by `stagedoor connect`, for the template of the demo, from its table.

import { type ConnectKind, stepsOf } from '../../src/connect/connect-kind.ts';
import { remoteTargets } from '../../src/connect/connect-target.ts';
import { CONNECT_KINDS } from '../../src/connect/index.ts';
import { code, item, plain, wrap } from './markdown.ts';

const TARGETS = remoteTargets('everything', 'http://127.0.0.1:8080', true);

export function clientSnippets(): string {
  const list = CONNECT_KINDS.map(({ title, name }) => `[${title}](#${anchorOf(title)}) (${code(name)})`);
  return [`${list.join(' ·\n')}`, ...CONNECT_KINDS.map(section)].join('\n\n');
}

function section(kind: ConnectKind): string {
  const { title, name, transports, file, troubleshooting, documentation } = kind;
  const snippets = transports.flatMap((transport) => [
    transport === 'http' ? 'With `--http`:' : 'With `--stdio`:',
    `\`\`\`${kind.language}\n${kind.snippet(TARGETS[transport])}\n\`\`\``,
  ]);
  const [first] = transports;
  return [
    `## ${title}`,
    `\`stagedoor connect everything --llm ${name}\``,
    ...snippets,
    ...(file === undefined ? [] : [locationLines(file.locations)]),
    stepsOf(kind, TARGETS[first])
      .map((step, index) => `${index + 1}. ${wrap(plain(step), '   ')}`)
      .join('\n'),
    `If it does not work:\n\n${troubleshooting.map((hint) => item(plain(hint))).join('\n')}`,
    `Its own documentation: ${documentation.map((page) => `<${page}>`).join(',\n')}`,
  ].join('\n\n');
}

function locationLines({ macos, windows, linux }: { macos: string; windows: string; linux: string }): string {
  return `| macOS | Windows | Linux |\n|---|---|---|\n| \`${macos}\` | \`${windows}\` | \`${linux}\` |`;
}

/** The anchor that GitHub makes of a heading. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
