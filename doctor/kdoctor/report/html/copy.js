"use strict";
// Copies without a network and from a file: where the clipboard is not available, the command is selected and copied.
const copied = async (command) => {
  try {
    await navigator.clipboard.writeText(command.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(command);
    return document.execCommand("copy");
  }
};
for (const command of document.querySelectorAll(".command code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = (await copied(command)) ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  command.parentElement.append(button);
}
// Paper cannot be unfolded.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.open = true;
    folded.dataset.folded = "";
  }
});
addEventListener("afterprint", () => {
  for (const opened of document.querySelectorAll("details[data-folded]")) {
    opened.open = false;
    delete opened.dataset.folded;
  }
});
