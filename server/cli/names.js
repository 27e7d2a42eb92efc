/** @param {string | undefined} list such as `shop,mail` @returns {string[]} */
export function namesIn (list) {
  return list?.split(',').map((name) => name.trim()).filter(Boolean) ?? []
}
