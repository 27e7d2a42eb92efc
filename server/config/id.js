/** What events, crash groups, rollouts and workers are numbered with, as text: JavaScript has it as an exact number. */
export const ID = /^[1-9]\d{0,14}$/
export const MAX_ID = 999_999_999_999_999
