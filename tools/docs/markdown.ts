// Small parts of Markdown that several pages share. Lines are short enough to read as plain text.

const LINE_CHARACTERS = 140;

/** Breaks a paragraph, or the text of a list item after `indent`, into lines. Code in backticks is not broken. */
export function wrap(text: string, indent = ''): string {
  const lines = [''];
  for (const word of text.match(/(?:`[^`]*`|\S)+/g) ?? []) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && indent.length + line.length + 1 + word.length > LINE_CHARACTERS) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join(`\n${indent}`);
}

export function item(text: string): string {
  return `- ${wrap(text, '  ')}`;
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** A table; `|` in a cell is escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

/** Turns paths of pages in a text, such as docs/guides/sync.md, into links from a page of docs/reference. */
export function linked(text: string): string {
  return text.replaceAll(
    /docs\/((?:[\w-]+\/)*([\w-]+))\.md(#[\w-]+)?/g,
    (_, path: string, name: string, anchor = '') => `[${name}](../${path}.md${anchor})`,
  );
}

/** Escapes characters that Markdown would read as HTML or emphasis. */
export function plain(text: string): string {
  return text.replaceAll(/[<*]/g, '\\$&');
}
