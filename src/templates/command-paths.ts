// Which parts of a word may be paths: programs read lists, options with a value, URLs, encoded text and shell commands in a word.
// It finds too many rather than too few, and does not look at the file system.

/** No system opens a longer path; it bounds the cost of one word of a command. */
const PATH_CHARACTERS = 4_096;

/** Characters that separate paths in a word. A path may contain some of them, so each kind also separates alone. */
const SEPARATORS = [/(?!)/, /,/, /[:;]/, /\s+/, /['"`]/, /[\s'"`,:;=|&<>(){}[\]!?#@$^]+/];

/**
 * The texts in `word` that a program may read as a path, each once: absolute, relative or starting with `~`. `variables` are those
 * that a shell would replace.
 */
export function pathTextsIn(word: string, variables: Readonly<Record<string, string>> = {}): Set<string> {
  const spellings = new Set([
    word,
    word.replaceAll(/\$(?:(\w+)|\{(\w+)\})/g, (all, name, braced) => variables[name ?? braced] ?? all),
    decoded(word),
    word.replaceAll('\\', '/'),
    word.replaceAll(/\\(.)|['"]/g, '$1'), // as a shell removes quotes
  ]);
  const pieces = new Set(
    [...spellings].flatMap((text) => SEPARATORS.flatMap((separator) => text.split(separator))),
  );
  const texts = new Set<string>();
  for (const piece of pieces)
    for (const text of valuesIn(piece)) if (text.length <= PATH_CHARACTERS) texts.add(text);
  // An empty path is the current folder: alone, or as the value of an option.
  if (!/^([^=]+=)?$/.test(word)) texts.delete('');
  return texts;
}

/** The text; what follows each `=` or the letter of an option in it; and the path of a URL. */
function* valuesIn(text: string): Generator<string> {
  yield text;
  const first = Math.max(0, text.length - PATH_CHARACTERS - 1);
  for (let at = text.indexOf('=', first); at !== -1; at = text.indexOf('=', at + 1)) yield text.slice(at + 1);
  if (text.startsWith('-')) {
    yield text.slice(2) || text; // -C/path
    yield text.slice(Math.max(0, text.search(/[/.~]/))); // -xC/path
  }
  if (/^\s*file:/i.test(text) && URL.canParse(text)) yield decoded(new URL(text).pathname);
  const { relative } = /^[\w+.-]+:\/\/\/(?<relative>.+)$/s.exec(text)?.groups ?? {};
  if (relative !== undefined) yield relative; // sqlite:///gateway.db
}

/** Without `%2e` and the like; other `%` stay. */
function decoded(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (code) =>
    Buffer.from(code.replaceAll('%', ''), 'hex').toString(),
  );
}
