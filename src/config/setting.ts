// What a setting is: a row of the table in settings.ts.

import type { SettingType } from './setting-types.ts';

/** How one setting is written. */
export interface SettingNames {
  /** Path in gateway.yaml; also the name in documents and in `stagedoor config`. */
  readonly key: string;
  /** On the command line, without the dashes. A secret has none, or refuses there what is secret in it: other users of
   *  the machine can read command lines. */
  readonly flag?: string;
  /** What follows `MCP_GATEWAY_` or `GATEWAY_` in the environment. */
  readonly variable: string;
  /** Masked wherever it is shown; may also come from the file named by `<variable>_FILE`. */
  readonly secret?: true;
}

export interface Setting<T> extends SettingNames {
  readonly kind: SettingType<T>;
  readonly default: T;
  /** How documents write the default, when its own text would not tell. */
  readonly defaultText?: string;
  /** One sentence for help texts and documents. */
  readonly doc: string;
}

/** A row as it is; holds its default against its kind, which the type of the table would not. */
export function setting<T>(row: Setting<T>): Setting<T> {
  return row;
}
