// What `stagedoor connect` prints of one kind of client: for people, and as JSON for programs.

import { type Connection, type ConnectKind, locationText } from '../../connect/kind.ts';
import type { Terminal } from '../terminal.ts';

/** Everything about one kind, for people. Without a line end. */
export function shownKind(
  kind: ConnectKind,
  connection: Connection,
  terminal: Pick<Terminal, 'paint'>,
): string {
  const { title, name, documentation, troubleshooting } = kind;
  const steps = kind.steps(connection).map((step, index) => `${index + 1}. ${step}`);
  return [
    terminal.paint('bold', `${title} (${name}, ${connection.transport})`),
    kind.snippet(connection),
    ...(kind.file === undefined ? [] : [`File: ${locationText(kind.file.locations)}`]),
    ['Steps:', ...steps].join('\n'),
    ['If it does not work:', ...troubleshooting.map((hint) => `- ${hint}`)].join('\n'),
    terminal.paint('dim', `Its own documentation: ${documentation.join(' ')}`),
  ].join('\n\n');
}

/** The same for programs. */
export function kindRecord(kind: ConnectKind, connection: Connection): Readonly<Record<string, unknown>> {
  const { name, title, language, troubleshooting, documentation, file } = kind;
  const way =
    connection.transport === 'http'
      ? { endpoint: connection.endpoint }
      : { program: connection.program, command: connection.command, args: connection.args };
  return {
    kind: name,
    title,
    transport: connection.transport,
    ...way,
    language,
    snippet: kind.snippet(connection),
    ...(file === undefined ? {} : { file: file.locations }),
    steps: kind.steps(connection),
    troubleshooting,
    documentation,
  };
}
