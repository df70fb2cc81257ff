// Values as they are written in the languages of snippets.

/** One word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A string of JavaScript. */
export function jsString(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

/** The string, list or map of strings in JavaScript, on one line. */
export function jsList(texts: readonly string[]): string {
  return `[${texts.map(jsString).join(', ')}]`;
}

/** A string of Python: the escapes of JSON are among those of Python. */
export function pyString(text: string): string {
  return JSON.stringify(text);
}

/** A list of strings in Python. */
export function pyList(texts: readonly string[]): string {
  return `[${texts.map(pyString).join(', ')}]`;
}

/** A map in Python; the values are expressions. */
export function pyDict(entries: Readonly<Record<string, string>>): string {
  const members = Object.entries(entries).map(([name, expression]) => `${pyString(name)}: ${expression}`);
  return `{${members.join(', ')}}`;
}

/** A program with an asynchronous main, whose lines are not indented. `os` is imported where they use it. */
export function pyProgram(imports: readonly string[], lines: readonly string[]): string {
  const usesEnvironment = lines.some((line) => line.includes('os.environ'));
  return [
    'import asyncio',
    ...(usesEnvironment ? ['import os'] : []),
    '',
    ...imports,
    '',
    '',
    'async def main() -> None:',
    ...lines.map((line) => (line === '' ? '' : `    ${line}`)),
    '',
    '',
    'asyncio.run(main())',
  ].join('\n');
}
