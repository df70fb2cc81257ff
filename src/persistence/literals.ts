// Two databases read some texts in a statement otherwise than MikroORM wrote them. Such a text is cut in two there, and
// put together again by the database.

/** What MikroORM writes values into statements with: its platform of one database. */
export interface LiteralWriter {
  escape(value: unknown): string;
}

/** A literal and what it is written as instead. */
export type Correction = (literal: string) => string;

/** Corrects every text that this platform writes from now on. */
export function correctLiterals(platform: LiteralWriter, correct: Correction): void {
  const write = platform.escape.bind(platform);
  platform.escape = (value) => {
    const literal = write(value);
    return /^N?'/.test(literal) ? correct(literal) : literal;
  };
}

/**
 * Oracle: MikroORM's driver takes `$1` for a variable and makes `:0` of it, also within a text. A bcrypt hash begins with
 * `$2b$12$`.
 */
export const withoutVariables: Correction = (literal) => {
  const cut = literal.replaceAll(/\$(?=\d)/g, `$$' || '`);
  return cut === literal ? literal : `(${cut})`;
};

/** SQL Server: a backslash at the end of a line continues the text on the next one, and both are dropped. */
export const withoutContinuedLines: Correction = (literal) => {
  const prefix = literal.startsWith('N') ? 'N' : '';
  const cut = literal.replaceAll(/\\(?=\r?\n)/g, `\\' + ${prefix}'`);
  return cut === literal ? literal : `(${cut})`;
};
