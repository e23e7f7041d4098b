// One line at the bottom: what has just happened.

const line = document.getElementById("said");
let timer = 0;

export function say(text) {
  line.textContent = text;
  line.classList.add("shown");
  clearTimeout(timer);
  timer = setTimeout(() => line.classList.remove("shown"), 6000);
}

export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${Math.max(Math.round(seconds), 1)} s left`;
  return `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, "0")} left`;
}
