/** @param {string} text that says how long a worker had @returns {string} without what a busy machine adds */
export const withoutStarved = (text) => text.replace(/ and another [\d.]+ m?s, in which it waited for a CPU/, '')
