/** The name of a release: `r1`, `r2`, … */
export const RELEASE_ID = /^r([1-9]\d{0,8})$/

/** @param {string} id @returns {number} 0: it is no name of a release */
export function releaseNumber (id) {
  return Number(RELEASE_ID.exec(id)?.[1] ?? 0)
}
