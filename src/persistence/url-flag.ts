// Options of database URLs that are on or off. What is neither is refused: a misspelt "yes" must not mean "no encryption".

import { UrlError } from './store-errors.ts';

/** The option `name` of a URL as true or false; `standard` when it is not there. Throws UrlError. */
export function flag(options: ReadonlyMap<string, string>, name: string, standard: boolean): boolean {
  const value = options.get(name);
  if (value === undefined) return standard;
  if (/^(?:true|yes|1)$/i.test(value)) return true;
  if (/^(?:false|no|0)$/i.test(value)) return false;
  throw new UrlError(`${name} is true or false`);
}
