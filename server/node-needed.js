/** The oldest Node that runs clusterdeck. Apps may run on older ones. */
export const NEEDED = [22, 19]

/** @param {string} version such as 20.19.1 @returns {boolean} */
export function isNewEnough (version) {
  const [major, minor] = version.split('.').map(Number)
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])
}
