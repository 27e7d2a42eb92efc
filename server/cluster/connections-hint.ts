/** What databases, their poolers and their drivers say once they take no more connections. */
const SAYS_FULL =
  /\btoo many (?:\w+ )?(?:connections|clients)\b|\bremaining connection slots are reserved\b|\bmax(?:imum)? (?:number of )?clients reached\b|\bno more connections allowed\b|\b53300\b/i
const FEWER = 'let each worker open fewer'

/**
 * What may help a worker that has ended since a database takes no more connections, as it often is while old and new
 * workers run side by side.
 * @param why as it has said itself
 * @param isBesideOther whether it was to replace one that serves, and has connections of its own
 */
export function connectionsHint (why: string, { isBesideOther }: { isBesideOther: boolean }): string | null {
  if (!SAYS_FULL.test(why)) return null
  return isBesideOther
    ? `the database takes no more connections while old and new workers run side by side: ${FEWER}, replace fewer workers at once (rollout.surge), or end each old one first (rollout.order: stop-first)`
    : `the database takes no more connections: ${FEWER}, or run fewer workers`
}
