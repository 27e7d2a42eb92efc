/** The name of a release: `r1`, `r2`, … */
export const RELEASE_ID = /^r([1-9]\d{0,8})$/

/** @returns 0: it is no name of a release */
export function releaseNumber (id: string): number {
  return Number(RELEASE_ID.exec(id)?.[1] ?? 0)
}

/** Tells whether the first of two releases was made after the other */
export function isNewer (id: string, other: string): boolean {
  return releaseNumber(id) > releaseNumber(other)
}
