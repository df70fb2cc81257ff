// The facts of an error, whichever driver it comes from and however MikroORM or a pool wrapped it.

import type { DriverError } from './database.ts';

/** Undefined for what no driver throws. */
export function driverErrorOf(thrown: unknown): DriverError | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { message } = thrown;
  const facts = { code: textOf(thrown, 'code'), number: numberOf(thrown), isFatal: isFatal(thrown), message };
  if (facts.code !== '' || facts.number !== 0) return facts;
  const inner = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause;
  const innerFacts = driverErrorOf(inner);
  return innerFacts === undefined
    ? facts
    : { ...innerFacts, message: `${thrown.message}: ${innerFacts.message}` };
}

/**
 * What may be logged of an error: its kind, its codes, and which constraint of which table refused. The driver's own
 * message holds the statement with its values or the failing row, and those hold hashes. What no driver threw stays.
 */
export function withoutValues(thrown: unknown, facts: DriverError | undefined): unknown {
  if (!(thrown instanceof Error) || facts === undefined || (facts.code === '' && facts.number === 0))
    return thrown;
  const places = ['table', 'constraint'].flatMap((name) => placeIn(thrown, name));
  const codes = [facts.code, facts.number === 0 ? '' : String(facts.number)].filter((code) => code !== '');
  const kind = thrown.constructor.name;
  return new Error([`the database refused (${kind}: ${codes.join(' ')})`, ...places].join(', '));
}

/** A name as drivers give it apart from their message, on the error or on what it wraps. */
function placeIn(error: Error, name: string): string[] {
  const text = textOf(error, name);
  if (text !== '') return [`${name} ${text}`];
  return error.cause instanceof Error ? placeIn(error.cause, name) : [];
}

function textOf(error: Error, name: string): string {
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : '';
}

/** `errno` of mysql2, `number` of tedious, `errorNum` of oracledb; Node's own `errno` is negative and says nothing new. */
function numberOf(error: Error): number {
  for (const name of ['number', 'errorNum', 'errno']) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === 'number' && value > 0) return value;
  }
  return 0;
}

/** `severity` of pg, `fatal` of mysql2; what mysql2 got for an answer without a statement, it got for opening a connection. */
function isFatal(error: Error): boolean {
  // MikroORM gives every error the field; only mysql2 fills it.
  const isRefusal = textOf(error, 'sqlState') !== '' && Reflect.get(error, 'sql') === undefined;
  return (
    isRefusal || /^(?:FATAL|PANIC)$/.test(textOf(error, 'severity')) || Reflect.get(error, 'fatal') === true
  );
}
