/** `text`: that says how long a worker had @returns without what a busy machine adds */
export const withoutStarved = (text: string): string =>
  text.replace(/ and another [\d.]+ m?s, in which it waited for a CPU/, '')
