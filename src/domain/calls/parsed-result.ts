// Reading a result of a backend as a value, if it is not too large for that.

import { backendUnavailable } from '../errors/backend-errors.ts';
import type { GatewayError } from '../errors/errors.ts';
import type { JsonText } from '../json/json.ts';
import { hasMoreValues } from '../json/json-scanner.ts';
import { LIMITS } from '../limits.ts';
import { listReturnedBy } from '../mcp/mcp.ts';
import { MAX_LIST_VALUES } from '../memory/held-bytes.ts';
import type { ExchangeRequest } from './exchange.ts';

interface MostParsed {
  readonly bytes: number;
  readonly values: number;
}

/** The bounds of any other result. */
const MAX_PARSED: MostParsed = { bytes: LIMITS.parsedMessageBytes, values: LIMITS.parsedAtOnce };
/** The bounds of a page of a list. */
const MAX_PAGE: MostParsed = { ...MAX_PARSED, values: MAX_LIST_VALUES };

/**
 * The value of a result that the gateway itself reads; see JsonText for its forms. Throws BACKEND_UNAVAILABLE for
 * a result above `most`, and for one that is not JSON.
 */
export function parsedResult(
  result: JsonText,
  form: 'value' | 'exactValue' = 'value',
  most: MostParsed = MAX_PARSED,
): unknown {
  const tooLarge = tooLargeResult(result, most);
  if (tooLarge !== undefined) throw tooLarge;
  try {
    return result[form];
  } catch (cause) {
    throw backendUnavailable('its answer is not JSON', { delivered: 'yes', cause });
  }
}

/** The error for a page of a list that is too large to be read; undefined for all other results. For use when a page arrives. */
export function tooLargePage({ method }: ExchangeRequest, page: JsonText): GatewayError | undefined {
  return listReturnedBy(method) === undefined ? undefined : tooLargeResult(page, MAX_PAGE);
}

function tooLargeResult({ bytes }: JsonText, most: MostParsed): GatewayError | undefined {
  if (bytes.length <= most.bytes && !hasMoreValues(bytes, most.values)) return undefined;
  const reason = `its answer of ${bytes.length} bytes has more than ${most.values} values or ${most.bytes} bytes`;
  return backendUnavailable(reason, { delivered: 'yes' });
}
