/** What every release is called: `r1`, `r2`, … */
export const RELEASE_ID = /^r([1-9]\d{0,8})$/

/** @param {string} id @returns {number} 0 for what is none */
export function releaseNumber (id) {
  return Number(RELEASE_ID.exec(id)?.[1] ?? 0)
}
