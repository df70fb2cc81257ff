// What the programs in Python share: the key, headers and variables as expressions, and the words around them.

import { pyDict, pyList, pyString } from './code-text.ts';
import { type Connection, type HttpConnection, type StdioConnection, setVariable } from './kind.ts';

function keyExpression({ key }: Connection): string {
  if (key?.value !== undefined) return pyString(key.value);
  return `os.environ[${pyString(key?.variable ?? '')}]`;
}

/** The headers as a map of Python; undefined when there are none. */
export function pyHeaders(connection: HttpConnection): string | undefined {
  return connection.key === undefined ? undefined : pyDict({ 'X-API-Key': keyExpression(connection) });
}

/** The variables of the program, on top of those of this one, as a map of Python; undefined when there are none. */
export function pyEnvironment(connection: StdioConnection): string | undefined {
  const given = Object.fromEntries(
    Object.entries(connection.env).map(([name, value]) => [name, pyString(value)]),
  );
  const all =
    connection.key === undefined ? given : { ...given, STAGEDOOR_API_KEY: keyExpression(connection) };
  if (Object.keys(all).length === 0) return undefined;
  return `{**os.environ, ${pyDict(all).slice(1)}`;
}

/** Arguments of a call: `command="...", args=[...]`. */
export function pyCommand(connection: StdioConnection): string {
  const env = pyEnvironment(connection);
  const { command, args } = connection;
  return `command=${pyString(command)}, args=${pyList(args)}${env === undefined ? '' : `, env=${env}`}`;
}

/** The same as members of a map: `"command": "...", "args": [...]`. */
export function pyEntry(connection: Connection): string {
  if (connection.transport === 'http') {
    const headers = pyHeaders(connection);
    return pyDict({
      url: pyString(connection.endpoint),
      ...(headers === undefined ? {} : { headers }),
    });
  }
  const env = pyEnvironment(connection);
  const { command, args } = connection;
  return pyDict({ command: pyString(command), args: pyList(args), ...(env === undefined ? {} : { env }) });
}

/** What to do with a program in Python that needs this package. */
export function pythonSteps(connection: Connection, install: string): readonly string[] {
  return [
    `Run "pip install ${install}" in a virtual environment.`,
    'Save the snippet as client.py.',
    ...setVariable(connection),
    'Run "python client.py": it prints the names of the tools.',
  ];
}

/** What goes wrong with all of them. */
export const PYTHON_TROUBLE: readonly string[] = [
  'KeyError: the variable with the key is not set.',
  '"401": the key is not valid, or revoked; "404": the template is not there, or the key may not use it.',
];
