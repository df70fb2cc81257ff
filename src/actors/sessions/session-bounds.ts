// The bounds of sessions: how many there may be with one template and how many aggregate ones, how many each owner may have,
// and the memory for the profiles of their clients. Each session takes a place; client-sessions.ts decides what happens when
// there is none.

import { isOfSameUser } from '../../domain/accounts/principal.ts';
import { declarationsTooLarge, sessionLimit } from '../../domain/errors/session-errors.ts';
import { canonicalText } from '../../domain/json/json.ts';
import { type ClientProfile, profileBytes } from '../../domain/mcp/client.ts';
import { LruMap } from '../../domain/memory/lru-map.ts';
import { type Exceeded, shareOf, UserShares } from '../../domain/memory/user-shares.ts';
import { type McpSession, REPLACEABLE_MS } from '../../domain/sessions/mcp-session.ts';
import type { AnySessionValue } from '../../domain/sessions/session-value.ts';

/** The number of recent client profiles that are remembered to be shared. Large profiles are not. */
const MAX_PROFILES = 256;

/** Sessions with one template and aggregate ones are counted apart. */
type PlaceKind = 'template' | 'aggregate';

/** The bounds of all sessions of a gateway, in total and for each owner, and the places that are taken. */
export class SessionBounds {
  /** Most sessions of each kind. */
  readonly max: number;
  readonly #shares: Readonly<Record<PlaceKind, UserShares>>;
  /** One object per profile of the latest sessions, since many clients are the same program. */
  readonly #profiles = new LruMap<ClientProfile>(MAX_PROFILES);
  readonly #declarations: UserShares;

  constructor(max: number, share: number | undefined, declarations: UserShares) {
    this.max = max;
    const most = shareOf(max, share);
    this.#shares = { template: new UserShares(max, most), aggregate: new UserShares(max, most) };
    this.#declarations = declarations;
  }

  /** The bound that this session would exceed as one more of its owner; undefined when there is a place. */
  exceededBy(value: AnySessionValue): Exceeded | undefined {
    return this.#shares[kindOf(value)].exceededBy(value.ownerId);
  }

  /** Throws SESSION_LIMIT when there is no place. */
  check(value: AnySessionValue): void {
    const exceeded = this.exceededBy(value);
    if (exceeded !== undefined) throw sessionLimit(exceeded);
  }

  /**
   * Takes a place, which was checked before, and memory for the profile. Throws SESSION_LIMIT when there is no memory
   * left.
   */
  take(value: AnySessionValue): void {
    const { ownerId, profile } = value;
    if (!this.#declarations.take(ownerId, profileBytes(profile))) throw declarationsTooLarge('SESSION_LIMIT');
    this.#shares[kindOf(value)].add(ownerId);
  }

  release(value: AnySessionValue): void {
    const { ownerId, profile } = value;
    this.#shares[kindOf(value)].release(ownerId);
    this.#declarations.release(ownerId, profileBytes(profile));
  }

  /** One shared object for equal profiles, to save the memory of thousands of copies. */
  shared(profile: ClientProfile): ClientProfile {
    if (profileBytes(profile) > 0) return profile;
    const key = canonicalText(profile);
    const known = this.#profiles.get(key) ?? profile;
    this.#profiles.set(key, known);
    return known;
  }
}

/**
 * The session that has a place of the kind of `value` and whose client has been away longest; undefined when none has
 * been away for REPLACEABLE_MS. `ownerId`: only sessions of this user; undefined: of all.
 */
export function longestAway(
  sessions: readonly McpSession[],
  value: AnySessionValue,
  ownerId: string | undefined,
  nowMs: number,
): McpSession | undefined {
  let longest: McpSession | undefined;
  let sinceMs = nowMs - REPLACEABLE_MS;
  for (const session of sessions) {
    const { usedAtMs } = session.activity;
    if (usedAtMs > sinceMs) continue; // a busy session counts as used: see ClientSessions
    if (ownerId !== undefined && !isOfSameUser(session.value.ownerId, ownerId)) continue;
    if (!hasPlace(session, kindOf(value))) continue;
    longest = session;
    sinceMs = usedAtMs;
  }
  return longest;
}

function kindOf({ kind }: AnySessionValue): PlaceKind {
  return kind === 'template' ? 'template' : 'aggregate';
}

/** True for a session that has a place of this kind itself or with one of its parts. */
function hasPlace({ value, partIds = [] }: McpSession, kind: PlaceKind): boolean {
  return kindOf(value) === kind || (kind === 'template' && partIds.length > 0);
}
